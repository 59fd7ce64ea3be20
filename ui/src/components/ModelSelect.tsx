import type { Model } from "../api/types";
import { useWords } from "../i18n/words";

interface Props {
  models: readonly Model[];
  /** Version of the selected model. */
  value: string;
  onChoose: (version: string) => void;
  className?: string;
}

/** Select box of all models; marks the model in use. */
export function ModelSelect({ models, value, onChoose, className }: Props) {
  const words = useWords().common;
  return (
    <select className={className} value={value} onChange={(event) => onChoose(event.target.value)}>
      {models.map((model) => (
        <option key={model.version} value={model.version}>
          {model.name}
          {model.in_use ? ` (${words.inUse})` : ""}
        </option>
      ))}
    </select>
  );
}
