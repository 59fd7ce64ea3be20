import { Problem } from "../api/problems";
import { reasonOf } from "../parts/Trouble";
import { useWords } from "../words/words";

/** Why a step was not taken, told beside the film. A doubt has a panel of its own. */
export function StepTrouble({ error, onClose }: { error: Error | null; onClose: () => void }) {
  const words = useWords();
  if (!error || (error instanceof Problem && error.code === "concept_mismatch")) return null;
  const stale = error instanceof Problem && error.code === "stale_study";
  return (
    <div className="trouble solid" role="alert">
      <p>{stale ? words.reading.elsewhere : reasonOf(error, words)}</p>
      <button type="button" onClick={onClose}>
        {words.common.close}
      </button>
    </div>
  );
}
