import { centredBox } from "../film/box";
import type { Tool } from "../film/gestures";
import type { Size } from "../film/panZoom";
import { FULL_RANGE } from "../film/windowLevel";
import { useWords } from "../i18n/words";
import { formatNumber } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { useReadingContext } from "./ReadingContext";

const TOOLS: [Tool, string][] = [
  ["draw", "V"],
  ["pan", "H"],
  ["windowLevel", "W"],
];

const ICON_PATHS = {
  draw: "M4 6h16v12H4zM2 4h4v4H2zM18 4h4v4h-4zM2 16h4v4H2zM18 16h4v4h-4z",
  pan: "M12 2v20M2 12h20M12 2l-3 3M12 2l3 3M12 22l-3-3M12 22l3-3M2 12l3-3M2 12l3 3M22 12l-3-3M22 12l-3 3",
  windowLevel: "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18zM12 3v18M12 7h7.5M12 11h9M12 15h8.4M12 19h5",
};

/** Tools, zoom, fit, invert and reset. */
export function Toolbar({
  zoom,
  size,
  onHelp,
}: {
  zoom: (factor: number) => void;
  size: Size;
  onHelp: () => void;
}) {
  const words = useWords().reading;
  const { viewer, actions, locked } = useReadingContext();
  const tool = useStore(viewer.tool);
  const windowLevel = useStore(viewer.windowLevel);
  return (
    <div className="toolbar" role="toolbar" aria-label={words.tools}>
      {TOOLS.map(([name, key]) => (
        <button
          key={name}
          type="button"
          aria-pressed={tool === name}
          aria-label={words.tool[name]}
          title={`${words.tool[name]} (${key})`}
          onClick={() => viewer.tool.set(name)}
        >
          <Icon name={name} />
        </button>
      ))}
      <button
        type="button"
        title={`${words.boxHereHint} (B)`}
        disabled={locked}
        onClick={() => actions.placeBox(centredBox(size))}
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
      <button type="button" title="F" onClick={() => viewer.view.set(null)}>
        {words.fit}
      </button>
      <button
        type="button"
        title="I"
        aria-pressed={windowLevel.inverted}
        onClick={() => viewer.windowLevel.set({ ...windowLevel, inverted: !windowLevel.inverted })}
      >
        {words.invert}
      </button>
      <button
        type="button"
        title="R"
        onClick={() => {
          viewer.windowLevel.set(FULL_RANGE);
          viewer.view.set(null);
        }}
      >
        {words.reset}
      </button>
      <button type="button" title="?" onClick={onHelp}>
        {words.shortcuts}
      </button>
      <CurrentWindow />
    </div>
  );
}

function CurrentWindow() {
  const words = useWords().reading;
  const { viewer } = useReadingContext();
  const { language } = useStore(settings);
  const windowLevel = useStore(viewer.windowLevel);
  if (windowLevel.centre === FULL_RANGE.centre && windowLevel.width === FULL_RANGE.width) return null;
  return (
    <span className="muted small">
      {words.windowLevel(
        formatNumber(windowLevel.centre, language),
        formatNumber(windowLevel.width, language),
      )}
    </span>
  );
}

function Icon({ name }: { name: keyof typeof ICON_PATHS }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICON_PATHS[name]} />
    </svg>
  );
}
