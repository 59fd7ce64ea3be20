import type { ConceptExplanation, Explanation } from "../api/types";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { conceptColour } from "./conceptDisplay";
import { useReadingContext } from "./ReadingContext";

/** All findings, the most prominent first. Hovering shows a finding's map; selecting keeps it on the film. */
export function Findings({ explanation }: { explanation: Explanation }) {
  const words = useWords().reading;
  return (
    <section className="block" aria-labelledby="findings">
      <h2 id="findings">{words.findings}</h2>
      {explanation.concepts.length === 0 && <p className="muted">{words.noFindings}</p>}
      <ol className="findings">
        {explanation.concepts.map((seen, index) => (
          <Finding key={seen.name} seen={seen} place={index} />
        ))}
      </ol>
    </section>
  );
}

function Finding({ seen: finding, place: index }: { seen: ConceptExplanation; place: number }) {
  const words = useWords().reading;
  const { viewer, studyData, actions, locked, saving } = useReadingContext();
  const selection = useStore(viewer.selection);
  const chosen = selection.concept === finding.name;
  const colour = conceptColour(studyData, finding.name);
  const hover = (concept: string | null) => {
    if (selection.hovered !== concept) viewer.selection.set((current) => ({ ...current, hovered: concept }));
  };
  const certainty = words.certainty[finding.words] ?? finding.words;
  return (
    <li className={chosen ? "finding chosen" : "finding"}>
      <button
        type="button"
        className="finding-name"
        aria-pressed={chosen && selection.pinned}
        data-concept={finding.name}
        onClick={() => actions.chooseFinding(finding.name)}
        // pointermove, not pointerenter: a list that scrolls under a resting pointer must not change the map.
        onPointerMove={(event) => event.pointerType === "mouse" && hover(finding.name)}
        onPointerLeave={() => hover(null)}
      >
        <kbd aria-hidden="true">{index < 9 ? index + 1 : "·"}</kbd>
        <i className="swatch" style={{ background: colour }} />
        <span className={finding.rejected ? "title struck" : "title"}>{finding.title}</span>{" "}
        <span className="muted certainty">{certainty}</span>
        <span className="meter" aria-hidden="true">
          <i
            style={{ width: `${Math.min(Math.max(finding.strength ?? 0, 0), 1) * 100}%`, background: colour }}
          />
        </span>
      </button>
      <button
        type="button"
        className="plain reject"
        disabled={locked || saving}
        aria-label={finding.rejected ? words.undoRejection(finding.title) : words.reject(finding.title)}
        title={finding.rejected ? words.undoRejection(finding.title) : words.reject(finding.title)}
        onClick={() => actions.toggleRejection(finding.name)}
      >
        {finding.rejected ? "↺" : "✕"}
      </button>
    </li>
  );
}
