import { Dialog } from "../components/Dialog";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { settings, type Settings } from "./settings";

/** The settings dialog. Every change takes effect at once. */
export function SettingsDialog({ onClose }: { onClose: () => void }) {
  const words = useWords().settings;
  return (
    <Dialog title={words.title} onClose={onClose}>
      <div className="stack settings">
        <Choice name="language" legend={words.language} options={words.languages} />
        <Choice name="theme" legend={words.theme} options={words.themes} />
        <Choice name="lengths" legend={words.lengths} options={words.lengthUnits} />
        <Choice name="shares" legend={words.shares} options={words.probabilityFormats} />
        <ShortcutChoice />
        <div className="row end">
          <span className="muted small grow">{words.storedHint}</span>
          <button type="button" className="primary" onClick={onClose}>
            {words.done}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

/** Switches single-letter shortcuts off. Speech input may type letters that trigger them by accident. */
function ShortcutChoice() {
  const words = useWords().settings;
  const { keys } = useStore(settings);
  return (
    <fieldset className="choice">
      <legend>{words.keyboard}</legend>
      <label>
        <input
          type="checkbox"
          checked={keys}
          onChange={(event) => settings.set((old) => ({ ...old, keys: event.target.checked }))}
        />
        <span>{words.keys}</span>
      </label>
    </fieldset>
  );
}

type ChoiceName = "language" | "theme" | "lengths" | "shares";

interface ChoiceProps<Name extends ChoiceName> {
  name: Name;
  legend: string;
  options: Record<Settings[Name], string>;
}

function Choice<Name extends ChoiceName>({ name, legend, options }: ChoiceProps<Name>) {
  const current = useStore(settings)[name];
  return (
    <fieldset className="choice">
      <legend>{legend}</legend>
      {(Object.entries(options) as [Settings[Name], string][]).map(([value, optionLabel]) => (
        <label key={value} lang={name === "language" ? value : undefined}>
          <input
            type="radio"
            name={name}
            checked={current === value}
            onChange={() => settings.set((old) => ({ ...old, [name]: value }))}
          />
          <span>{optionLabel}</span>
        </label>
      ))}
    </fieldset>
  );
}
