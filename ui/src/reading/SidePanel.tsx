import type { Film } from "../api/types";
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
  const { desk, reading } = useSitting();
  const choice = useStore(desk.choice);
  const teaching = useStore(lesson);
  const { study, shown, explanation } = reading;
  const wanted = choice.hovered ?? choice.concept;
  const seen = explanation?.concepts.find((one) => one.name === wanted) ?? explanation?.concepts[0];
  return (
    <aside className="side" aria-label={words.classes}>
      <div className="side-blocks">
        <FilmFacts film={film} turn={turn} onTeach={onTeach} />
        {teaching.open && study && <TeachPanel model={study.model} onKept={onKept} />}
        {!shown && <p className="quiet block">{words.opening}</p>}
        {shown && <Classes study={shown} explanation={explanation} />}
        {explanation && <Findings explanation={explanation} />}
        {seen && study && <LooksLike seen={seen} model={study.model} />}
        {study && <History />}
        {explanation && <Graph explanation={explanation} />}
        {explanation && <Notes notes={explanation.warnings} />}
      </div>
    </aside>
  );
}
