import type { Box } from "../film/box";
import { useWords } from "../words/words";
import { titleOf, useSitting } from "./sitting";

export interface Suggestion {
  concept: string;
  box: Box;
}

/** A first thing to try, for whoever comes from the demo. */
export function Try({ suggestion, onDone }: { suggestion: Suggestion; onDone: () => void }) {
  const words = useWords().reading;
  const { desk, reading } = useSitting();
  const draw = () => {
    onDone();
    desk.choice.set((now) => ({ ...now, concept: suggestion.concept }));
    desk.edit.set({ ...suggestion, positive: true, number: null, moving: false, byHand: true });
  };
  return (
    <section className="try" aria-labelledby="try">
      <h2 id="try">{words.tryTitle}</h2>
      <p>{words.tryWords(titleOf(reading, suggestion.concept, words))}</p>
      <div className="row">
        <button type="button" className="primary" onClick={draw}>
          {words.tryDo}
        </button>
        <button type="button" onClick={onDone}>
          {words.tryNo}
        </button>
      </div>
    </section>
  );
}

/** `active_tb`, `53,82,76,107` from the page's address. */
export function suggested(concept: string | undefined, corners: string | undefined): Suggestion | null {
  const told = (corners ?? "").split(",");
  const [x1 = NaN, y1 = NaN, x2 = NaN, y2 = NaN] = told.map((one) => (one.trim() ? Number(one) : NaN));
  if (!concept || told.length !== 4 || ![x1, y1, x2, y2].every(Number.isFinite)) return null;
  return x1 < x2 && y1 < y2 ? { concept, box: { x1, y1, x2, y2 } } : null;
}
