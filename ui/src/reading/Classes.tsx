import type { Explanation, Study } from "../api/types";
import { readable, share, shift } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";

const WORTH_TELLING = 0.01;
const MOST = 3;

/** Probabilities of the classes, where they stood before any correction, and which findings moved them. */
export function Classes({ study, explanation }: { study: Study; explanation: Explanation | undefined }) {
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
  /** As in the list of findings, and as on the keys. */
  place: number;
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
  const liking = useStore(settings);
  return (
    <li>
      <div className="row spread">
        <span className="name">{readable(name)}</span>
        <span className="figures">
          {first !== null && <span className="quiet">{words.firstSaid(share(first, liking))}</span>}
          <strong data-class={name}>{share(now, liking)}</strong>
        </span>
      </div>
      <div className="meter" aria-hidden="true">
        <i style={{ width: `${now * 100}%` }} />
        {first !== null && <b style={{ left: `calc(${first * 100}% - 1px)` }} />}
      </div>
      {moves.length > 0 && (
        <p className="moves" title={words.movedWhy}>
          <span className="quiet">{words.movedBy}</span>
          {moves.map((move) => (
            <span key={move.title} className={move.by > 0 ? "chip up" : "chip down"} title={move.title}>
              <kbd aria-hidden="true">{move.place}</kbd>
              <span className="hidden">{move.title}</span> {shift(move.by, liking)}
            </span>
          ))}
        </p>
      )}
    </li>
  );
}

function movesOf(explanation: Explanation | undefined, name: string): Move[] {
  const moves = (explanation?.concepts ?? []).map((one, place) => ({
    title: one.title,
    place: place + 1,
    by: one.moves?.[name] ?? 0,
  }));
  return moves
    .filter((move) => Math.abs(move.by) >= WORTH_TELLING)
    .sort((one, other) => Math.abs(other.by) - Math.abs(one.by))
    .slice(0, MOST);
}
