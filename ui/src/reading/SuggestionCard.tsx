import type { Box } from "../film/box";
import { useWords } from "../i18n/words";
import { conceptTitle } from "./conceptDisplay";
import { useReadingContext } from "./ReadingContext";

export interface Suggestion {
  concept: string;
  box: Box;
}

/** Suggests a first box to draw; opened by a link of the demo. */
export function SuggestionCard({ suggestion, onDone }: { suggestion: Suggestion; onDone: () => void }) {
  const words = useWords().reading;
  const { viewer, studyData } = useReadingContext();
  const draw = () => {
    onDone();
    viewer.selection.set((current) => ({ ...current, concept: suggestion.concept }));
    viewer.draft.set({
      ...suggestion,
      positive: true,
      correctionIndex: null,
      moving: false,
      drawnByPointer: true,
    });
  };
  return (
    <section className="suggestion" aria-labelledby="suggestion">
      <h2 id="suggestion">{words.suggestionTitle}</h2>
      <p>{words.suggestionText(conceptTitle(studyData, suggestion.concept, words))}</p>
      <div className="row">
        <button type="button" className="primary" onClick={draw}>
          {words.suggestionAccept}
        </button>
        <button type="button" onClick={onDone}>
          {words.suggestionDecline}
        </button>
      </div>
    </section>
  );
}

/** Parse the address of a suggestion, such as `active_tb` and `53,82,76,107`. */
export function parseSuggestion(concept: string | undefined, corners: string | undefined): Suggestion | null {
  const edges = (corners ?? "").split(",");
  const [x1 = NaN, y1 = NaN, x2 = NaN, y2 = NaN] = edges.map((edge) => (edge.trim() ? Number(edge) : NaN));
  if (!concept || edges.length !== 4 || ![x1, y1, x2, y2].every(Number.isFinite)) return null;
  return x1 < x2 && y1 < y2 ? { concept, box: { x1, y1, x2, y2 } } : null;
}
