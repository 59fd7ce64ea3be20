import type { ModelCard } from "../api/types";
import { readable } from "../parts/format";
import { useWords } from "../words/words";
import { textAt } from "./metrics";

/** What a model is made of. */
export function Build({ card }: { card: ModelCard }) {
  const words = useWords().model;
  const [rows, columns] = card.grid;
  return (
    <section className="card stack" aria-labelledby="build-title">
      <h2 id="build-title">{words.build}</h2>
      <dl className="facts">
        <dt>{words.classes}</dt>
        <dd>{card.classes.map(readable).join(", ")}</dd>
        <dt>{words.prototypes}</dt>
        <dd>{words.prototypesTold(card.concepts, card.prototypes)}</dd>
        <dt>{words.input}</dt>
        <dd>{words.inputTold(card.input_size, rows, columns)}</dd>
        <dt>{words.backbone}</dt>
        <dd>{card.backbone}</dd>
        <dt>{words.head}</dt>
        <dd>{words.heads[card.head] ?? card.head}</dd>
        <dt>{words.textEncoder}</dt>
        <dd lang="en">{textAt(card.metrics, "text_encoder") ?? words.noneTold}</dd>
      </dl>
    </section>
  );
}
