import { useWords } from "../words/words";
import { filters } from "./filters";

/** Turns the pages of the list. */
export function Pages({ page, last }: { page: number; last: number }) {
  const words = useWords().worklist;
  if (last <= 1) return null;
  const turn = (to: number) => {
    filters.set((now) => ({ ...now, page: to }));
    document.getElementById("content")?.scrollTo({ top: 0 });
  };
  return (
    <nav className="row pages" aria-label={words.pages}>
      <button type="button" disabled={page <= 1} onClick={() => turn(page - 1)}>
        ← {words.earlier}
      </button>
      <span className="quiet">{words.page(page, last)}</span>
      <button type="button" disabled={page >= last} onClick={() => turn(page + 1)}>
        {words.later} →
      </button>
    </nav>
  );
}
