import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { prototypesQuery } from "../api/queries";
import type { Concept, Model, Prototype } from "../api/types";
import { worthQuery } from "../model/queries";
import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";
import { arranged, type Order, type Shown, usageOf } from "./arranging";
import { PrototypeCard } from "./PrototypeCard";
import { PrototypeFilm } from "./PrototypeFilm";
import { Tools } from "./Tools";

/** Every prototype of one finding. */
export function Prototypes({ model, concept }: { model: Model; concept: Concept }) {
  const { atlas: words, common } = useWords();
  const asked = useQuery(prototypesQuery(model.version, concept.name));
  const worth = useQuery(worthQuery(model.version));
  const usage = usageOf(worth.data, concept.name);
  const [order, setOrder] = useState<Order>("number");
  const [shown, setShown] = useState<Shown>("all");
  const [chosen, setChosen] = useState<ReadonlySet<number>>(new Set());
  const [opened, setOpened] = useState<Prototype | null>(null);
  const toggle = (number: number) =>
    setChosen((now) =>
      now.has(number) ? new Set([...now].filter((one) => one !== number)) : new Set([...now, number]),
    );
  if (asked.isError) return <Trouble error={asked.error} again={() => void asked.refetch()} />;
  if (asked.isPending) return <p className="quiet lonely">{common.loading}</p>;
  const kept = asked.data.filter((one) => one.kept).length;
  return (
    <>
      <div className="concept-head">
        <h2 lang="en">{concept.title}</h2>
        <span className="quiet">{words.counts(kept, asked.data.length - kept)}</span>
        <p lang="en">{concept.description}</p>
      </div>
      <Tools
        model={model}
        concept={concept.name}
        all={asked.data}
        chosen={chosen}
        onNone={() => setChosen(new Set())}
        order={order}
        onOrder={setOrder}
        shown={shown}
        onShown={setShown}
        measured={usage !== null}
      />
      <ul className="prototypes" aria-label={words.list}>
        {arranged(asked.data, order, shown, usage).map((one) => (
          <PrototypeCard
            key={one.number}
            model={model.version}
            prototype={one}
            usage={usage}
            chosen={chosen.has(one.number)}
            onChoose={() => toggle(one.number)}
            onOpen={() => setOpened(one)}
          />
        ))}
      </ul>
      {opened && (
        <PrototypeFilm
          model={model.version}
          prototype={opened}
          usage={usage}
          onClose={() => setOpened(null)}
        />
      )}
    </>
  );
}
