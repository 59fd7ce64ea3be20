import { Dialog } from "../parts/Dialog";
import { useStore } from "../parts/store";
import { useWords } from "../words/words";
import { settings, type Settings as Liking } from "./settings";

/** How somebody likes the page. Every choice takes effect at once. */
export function Settings({ onClose }: { onClose: () => void }) {
  const words = useWords().settings;
  return (
    <Dialog title={words.title} onClose={onClose}>
      <div className="stack settings">
        <Choice name="language" legend={words.language} options={words.languages} />
        <Choice name="theme" legend={words.theme} options={words.themes} />
        <Choice name="lengths" legend={words.lengths} options={words.lengthsTold} />
        <Choice name="shares" legend={words.shares} options={words.sharesTold} />
        <Keys />
        <div className="row end">
          <span className="quiet small grow">{words.kept}</span>
          <button type="button" className="primary" onClick={onClose}>
            {words.done}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

/** Speech input, and a hand that rests on the keyboard, may press letters that nobody meant. */
function Keys() {
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

type Named = "language" | "theme" | "lengths" | "shares";

interface ChoiceProps<Name extends Named> {
  name: Name;
  legend: string;
  options: Record<Liking[Name], string>;
}

function Choice<Name extends Named>({ name, legend, options }: ChoiceProps<Name>) {
  const now = useStore(settings)[name];
  return (
    <fieldset className="choice">
      <legend>{legend}</legend>
      {(Object.entries(options) as [Liking[Name], string][]).map(([value, told]) => (
        <label key={value} lang={name === "language" ? value : undefined}>
          <input
            type="radio"
            name={name}
            checked={now === value}
            onChange={() => settings.set((old) => ({ ...old, [name]: value }))}
          />
          <span>{told}</span>
        </label>
      ))}
    </fieldset>
  );
}
