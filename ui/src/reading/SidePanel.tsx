import type { Explanation, Film } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { teachingState } from "../teaching/teachingState";
import { TeachPanel } from "../teaching/TeachPanel";
import { AttentionGraph } from "./AttentionGraph";
import { ClassProbabilities } from "./ClassProbabilities";
import { CorrectionHistory } from "./CorrectionHistory";
import { Exemplars } from "./Exemplars";
import { FilmSummary } from "./FilmSummary";
import { Findings } from "./Findings";
import { useReadingContext } from "./ReadingContext";

interface Props {
  film: Film;
  goToFilm: (by: 1 | -1) => void;
  onTeach: (() => void) | null;
  onKept: (model: string) => void;
}

/** Everything about the film except its picture. */
export function SidePanel({ film, goToFilm, onTeach, onKept }: Props) {
  const words = useWords().reading;
  const { studyData } = useReadingContext();
  const teaching = useStore(teachingState);
  const { study, shownStudy, explanation } = studyData;
  return (
    <aside className="side-panel" aria-label={words.about}>
      <div className={studyData.isStale ? "side-blocks stale" : "side-blocks"} aria-busy={studyData.isStale}>
        <FilmSummary film={film} turn={goToFilm} onTeach={onTeach} />
        {teaching.open && study && <TeachPanel model={study.model} onKept={onKept} />}
        {studyData.error != null && <ErrorMessage error={studyData.error} onRetry={studyData.retry} />}
        {!shownStudy && <p className="muted block">{words.opening}</p>}
        {shownStudy && <ClassProbabilities study={shownStudy} explanation={explanation} />}
        {explanation && <FindingsAndExemplars explanation={explanation} />}
        {study && <CorrectionHistory />}
        {explanation && <AttentionGraph explanation={explanation} />}
        {explanation && <Notes notes={explanation.warnings} />}
      </div>
    </aside>
  );
}

/** The findings, and the exemplars of the hovered or selected finding. */
function FindingsAndExemplars({ explanation }: { explanation: Explanation }) {
  const { viewer, studyData } = useReadingContext();
  const selection = useStore(viewer.selection);
  const name = selection.hovered ?? selection.concept;
  const seen = explanation.concepts.find((finding) => finding.name === name) ?? explanation.concepts[0];
  return (
    <>
      <Findings explanation={explanation} />
      {seen && studyData.study && <Exemplars seen={seen} model={studyData.study.model} />}
    </>
  );
}

/** What to know before trusting the film or the model. */
function Notes({ notes }: { notes: readonly string[] }) {
  const words = useWords().reading;
  if (notes.length === 0) return null;
  return (
    <section className="block notes" aria-labelledby="notes">
      <h2 id="notes">{words.notesTitle}</h2>
      <ul>
        {notes.map((note) => (
          <li key={note} lang="en">
            {note}
          </li>
        ))}
      </ul>
    </section>
  );
}
