import { Problem } from "../api/problems";
import type { Words } from "../i18n/words";
import { useWords } from "../i18n/words";

/** The error as a sentence, translated if the page knows its code. */
export function errorText(error: unknown, words: Words): string {
  if (error instanceof Problem) return words.common.problems[error.code] ?? error.detail;
  return error instanceof Error && error.message ? error.message : words.common.unreachable;
}

/** An error message, with a retry button if `onRetry` is given. */
export function ErrorMessage({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const words = useWords();
  return (
    <div className="error-message" role="alert">
      <p>{errorText(error, words)}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          {words.common.retry}
        </button>
      )}
    </div>
  );
}
