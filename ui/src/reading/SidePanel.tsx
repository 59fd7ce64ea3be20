import type { Explanation, Film } from "../api/types";
import { Trouble } from "../parts/Trouble";
import { useStore } from "../parts/store";
import { TeachPanel } from "../teaching/TeachPanel";
import { lesson } from "../teaching/lesson";
import { useWords } from "../words/words";
import { Classes } from "./Classes";
import { FilmFacts } from "./FilmFacts";
import { Findings } from "./Findings";
import { Graph } from "./Graph";
import { History } from "./History";
import { LooksLike } from "./LooksLike";
import { Notes } from "./Notes";
import { useSitting } from "./sitting";

interface Props {
  film: Film;
  turn: (by: 1 | -1) => void;
  onTeach: (() => void) | null;
  onKept: (model: string) => void;
}

/** Everything about the film but its picture. */
export function SidePanel({ film, turn, onTeach, onKept }: Props) {
  const words = useWords().reading;
  const { reading } = useSitting();
  const teaching = useStore(lesson);
  const { study, shown, explanation } = reading;
  return (
    <aside className="side" aria-label={words.about}>
      <div className={reading.settling ? "side-blocks settling" : "side-blocks"} aria-busy={reading.settling}>
        <FilmFacts film={film} turn={turn} onTeach={onTeach} />
        {teaching.open && study && <TeachPanel model={study.model} onKept={onKept} />}
        {reading.error != null && <Trouble error={reading.error} again={reading.again} />}
        {!shown && <p className="quiet block">{words.opening}</p>}
        {shown && <Classes study={shown} explanation={explanation} />}
        {explanation && <Seen explanation={explanation} />}
        {study && <History />}
        {explanation && <Graph explanation={explanation} />}
        {explanation && <Notes notes={explanation.warnings} />}
      </div>
    </aside>
  );
}

/** What the model sees, and what the finding that one points at reminds it of. */
function Seen({ explanation }: { explanation: Explanation }) {
  const { desk, reading } = useSitting();
  const choice = useStore(desk.choice);
  const wanted = choice.hovered ?? choice.concept;
  const seen = explanation.concepts.find((one) => one.name === wanted) ?? explanation.concepts[0];
  return (
    <>
      <Findings explanation={explanation} />
      {seen && reading.study && <LooksLike seen={seen} model={reading.study.model} />}
    </>
  );
}
