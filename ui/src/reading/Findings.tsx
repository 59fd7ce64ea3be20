import type { ConceptSeen, Explanation } from "../api/types";
import { useStore } from "../parts/store";
import { useWords } from "../words/words";
import { colourAt } from "./palette";
import { positionOf, useSitting } from "./sitting";

/** Findings, the one that stands out most first. Pointing at one shows its map, choosing it keeps the map there. */
export function Findings({ explanation }: { explanation: Explanation }) {
  const words = useWords().reading;
  return (
    <section className="block" aria-labelledby="findings">
      <h2 id="findings">{words.findings}</h2>
      {explanation.concepts.length === 0 && <p className="quiet">{words.noFindings}</p>}
      <ol className="findings">
        {explanation.concepts.map((seen, place) => (
          <Finding key={seen.name} seen={seen} place={place} />
        ))}
      </ol>
    </section>
  );
}

function Finding({ seen, place }: { seen: ConceptSeen; place: number }) {
  const words = useWords().reading;
  const { desk, reading, acts, locked, busy } = useSitting();
  const choice = useStore(desk.choice);
  const chosen = choice.concept === seen.name;
  const colour = colourAt(positionOf(reading, seen.name));
  const hover = (concept: string | null) => {
    if (choice.hovered !== concept) desk.choice.set((now) => ({ ...now, hovered: concept }));
  };
  const sayings = words.words[seen.words] ?? seen.words;
  return (
    <li className={chosen ? "finding chosen" : "finding"}>
      <button
        type="button"
        className="finding-name"
        aria-pressed={chosen && choice.pinned}
        data-concept={seen.name}
        onClick={() => acts.choose(seen.name)}
        // Moving, not entering: a list that slides under a resting pointer was not pointed at.
        onPointerMove={(event) => event.pointerType === "mouse" && hover(seen.name)}
        onPointerLeave={() => hover(null)}
      >
        <kbd aria-hidden="true">{place < 9 ? place + 1 : "·"}</kbd>
        <i className="swatch" style={{ background: colour }} />
        <span className={seen.rejected ? "title struck" : "title"}>{seen.title}</span>{" "}
        <span className="quiet sayings">{sayings}</span>
        <span className="meter" aria-hidden="true">
          <i
            style={{ width: `${Math.min(Math.max(seen.strength ?? 0, 0), 1) * 100}%`, background: colour }}
          />
        </span>
      </button>
      <button
        type="button"
        className="plain reject"
        disabled={locked || busy}
        aria-label={seen.rejected ? words.takeBack(seen.title) : words.reject(seen.title)}
        title={seen.rejected ? words.takeBack(seen.title) : words.reject(seen.title)}
        onClick={() => acts.toggleRejection(seen.name)}
      >
        {seen.rejected ? "↺" : "✕"}
      </button>
    </li>
  );
}
