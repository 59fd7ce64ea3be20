import type { Explanation, Study } from "../api/types";
import { useWords } from "../i18n/words";
import { displayName, formatChange, formatProbability } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";

const SMALLEST_SHOWN = 0.01;
const MOST_SHOWN = 3;

/** Class probabilities, now and before any correction, and the findings that changed them most. */
export function ClassProbabilities({
  study,
  explanation,
}: {
  study: Study;
  explanation: Explanation | undefined;
}) {
  const words = useWords().reading;
  const corrected = study.corrections.length > 0;
  return (
    <section className="block" aria-labelledby="classes">
      <h2 id="classes">{words.classes}</h2>
      <ul className="classes">
        {Object.entries(study.prediction).map(([name, now]) => (
          <ClassRow
            key={name}
            name={name}
            now={now}
            first={corrected ? (study.first_prediction[name] ?? null) : null}
            moves={movesOf(explanation, name)}
          />
        ))}
      </ul>
    </section>
  );
}

interface Move {
  title: string;
  /** Position in the list of findings, which is also its shortcut key. */
  position: number;
  by: number;
}

function ClassRow({
  name,
  now,
  first,
  moves,
}: {
  name: string;
  now: number;
  first: number | null;
  moves: Move[];
}) {
  const words = useWords().reading;
  const preferences = useStore(settings);
  return (
    <li>
      <div className="row spread">
        <span className="name">{displayName(name)}</span>
        <span className="figures">
          {first !== null && (
            <span className="muted">{words.initially(formatProbability(first, preferences))}</span>
          )}
          <strong data-class={name}>{formatProbability(now, preferences)}</strong>
        </span>
      </div>
      <div className="meter" aria-hidden="true">
        <i style={{ width: `${now * 100}%` }} />
        {first !== null && <b style={{ left: `calc(${first * 100}% - 1px)` }} />}
      </div>
      {moves.length > 0 && (
        <p className="moves" title={words.influenceHint}>
          <span className="muted">{words.influencedBy}</span>
          {moves.map((move) => (
            <span key={move.title} className={move.by > 0 ? "chip up" : "chip down"} title={move.title}>
              <kbd aria-hidden="true">{move.position}</kbd>
              <span className="visually-hidden">{move.title}</span> {formatChange(move.by, preferences)}
            </span>
          ))}
        </p>
      )}
    </li>
  );
}

function movesOf(explanation: Explanation | undefined, name: string): Move[] {
  const moves = (explanation?.concepts ?? []).map((finding, index) => ({
    title: finding.title,
    position: index + 1,
    by: finding.moves?.[name] ?? 0,
  }));
  return moves
    .filter((move) => Math.abs(move.by) >= SMALLEST_SHOWN)
    .sort((a, b) => Math.abs(b.by) - Math.abs(a.by))
    .slice(0, MOST_SHOWN);
}
