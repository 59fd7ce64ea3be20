import { middling } from "../film/box";
import type { Size } from "../film/view";
import type { Tool } from "../film/gestures";
import { PLAIN } from "../film/greys";
import { Icon } from "../parts/Icon";
import { figure } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { useSitting } from "./sitting";

const TOOLS: [Tool, string][] = [
  ["draw", "V"],
  ["pan", "H"],
  ["greys", "W"],
];

/** How the film is looked at. */
export function Toolbar({
  zoom,
  size,
  onKeys,
}: {
  zoom: (factor: number) => void;
  size: Size;
  onKeys: () => void;
}) {
  const words = useWords().reading;
  const { desk, acts, locked } = useSitting();
  const tool = useStore(desk.tool);
  const greys = useStore(desk.greys);
  return (
    <div className="toolbar" role="toolbar" aria-label={words.tools}>
      {TOOLS.map(([name, key]) => (
        <button
          key={name}
          type="button"
          aria-pressed={tool === name}
          aria-label={words.tool[name]}
          title={`${words.tool[name]} (${key})`}
          onClick={() => desk.tool.set(name)}
        >
          <Icon name={name} />
        </button>
      ))}
      <button
        type="button"
        title={`${words.boxHereTold} (B)`}
        disabled={locked}
        onClick={() => acts.place(middling(size))}
      >
        {words.boxHere}
      </button>
      <button
        type="button"
        aria-label={words.zoomIn}
        title={`${words.zoomIn} (+)`}
        onClick={() => zoom(1.25)}
      >
        +
      </button>
      <button
        type="button"
        aria-label={words.zoomOut}
        title={`${words.zoomOut} (−)`}
        onClick={() => zoom(0.8)}
      >
        −
      </button>
      <button type="button" title="F" onClick={() => desk.view.set(null)}>
        {words.fit}
      </button>
      <button
        type="button"
        title="I"
        aria-pressed={greys.inverted}
        onClick={() => desk.greys.set({ ...greys, inverted: !greys.inverted })}
      >
        {words.invert}
      </button>
      <button
        type="button"
        title="R"
        onClick={() => {
          desk.greys.set(PLAIN);
          desk.view.set(null);
        }}
      >
        {words.reset}
      </button>
      <button type="button" title="?" onClick={onKeys}>
        {words.keys}
      </button>
      <GreysNow />
    </div>
  );
}

function GreysNow() {
  const words = useWords().reading;
  const { desk } = useSitting();
  const { language } = useStore(settings);
  const greys = useStore(desk.greys);
  if (greys.centre === PLAIN.centre && greys.width === PLAIN.width) return null;
  return (
    <span className="quiet small">
      {words.greysNow(figure(greys.centre, language), figure(greys.width, language))}
    </span>
  );
}
