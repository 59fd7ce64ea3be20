import { Problem } from "../api/problems";
import type { Words } from "../words/words";
import { useWords } from "../words/words";

/** Why something did not work, in the page's language where it has words for it. */
export function reasonOf(error: unknown, words: Words): string {
  if (error instanceof Problem) return words.common.problems[error.code] ?? error.detail;
  return error instanceof Error && error.message ? error.message : words.common.lost;
}

/** A refusal, told where somebody looks. */
export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  const words = useWords();
  return (
    <div className="trouble" role="alert">
      <p>{reasonOf(error, words)}</p>
      {again && (
        <button type="button" onClick={again}>
          {words.common.again}
        </button>
      )}
    </div>
  );
}
