import type { Model } from "../api/types";
import { useWords } from "../words/words";

interface Props {
  models: readonly Model[];
  /** The version that is chosen. */
  value: string;
  onChoose: (version: string) => void;
  className?: string;
}

/** Which of the room's models; the one in use says so. */
export function ModelSelect({ models, value, onChoose, className }: Props) {
  const words = useWords().common;
  return (
    <select className={className} value={value} onChange={(event) => onChoose(event.target.value)}>
      {models.map((one) => (
        <option key={one.version} value={one.version}>
          {one.name}
          {one.in_use ? ` (${words.inUse})` : ""}
        </option>
      ))}
    </select>
  );
}
