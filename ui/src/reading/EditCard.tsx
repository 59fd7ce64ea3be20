import { useEffect } from "react";

import { connection } from "../api/connection";
import type { Check } from "../api/types";
import { figure } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import type { Edit } from "../film/desk";
import { answers } from "./liveCheck";
import { colourAt } from "./palette";
import { positionOf, titleOf, useSitting } from "./sitting";
import { lengths } from "./lengths";

const MOST = 4;

/** The box in hand: what is claimed, what the model sees in it, and what can be done with it. */
export function EditCard({ onExample }: { onExample: (edit: Edit) => void }) {
  const { desk, live } = useSitting();
  const edit = useStore(desk.edit);
  useEffect(() => {
    // Straight from the hand: what waits until the screen was drawn comes a frame later.
    const ask = () => {
      const now = desk.edit.get();
      live?.want(now && { box: now.box, concept: now.concept });
    };
    ask();
    const ends = [desk.edit.subscribe(ask), connection.subscribe(() => !connection.get().lost && ask())];
    return () => {
      for (const end of ends) end();
    };
  }, [desk, live]);
  return edit && <Card edit={edit} onExample={onExample} />;
}

function Card({ edit, onExample }: { edit: Edit; onExample: (edit: Edit) => void }) {
  const words = useWords().reading;
  const { desk, reading } = useSitting();
  const liking = useStore(settings);
  const teaching = useStore(desk.teaching);
  const size = lengths(edit.box, reading.film, liking, words);
  return (
    <section
      className="edit-card"
      aria-label={edit.number === null ? words.newBox : words.boxNumber(edit.number + 1)}
    >
      <div className="row spread">
        <strong>{edit.number === null ? words.newBox : words.boxNumber(edit.number + 1)}</strong>
        <span className="quiet">{size}</span>
      </div>
      {!teaching && <Claim edit={edit} />}
      <Inside edit={edit} />
      <Buttons edit={edit} onExample={onExample} />
    </section>
  );
}

function Claim({ edit }: { edit: Edit }) {
  const words = useWords().reading;
  const { desk, reading } = useSitting();
  const change = (changed: Partial<Edit>) => desk.edit.set({ ...edit, ...changed });
  return (
    <div className="row">
      <label className="grow">
        <span className="hidden">{words.finding}</span>
        <select value={edit.concept} onChange={(event) => change({ concept: event.target.value })}>
          {reading.concepts.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span className="hidden">{words.isHere}</span>
        <select
          value={edit.positive ? "here" : "not"}
          onChange={(event) => change({ positive: event.target.value === "here" })}
        >
          <option value="here">{words.isHere}</option>
          <option value="not">{words.isNotHere}</option>
        </select>
      </label>
    </div>
  );
}

/** What the model sees inside, told while the box is being drawn. */
function Inside({ edit }: { edit: Edit }) {
  const words = useWords().reading;
  const { live } = useSitting();
  const answer = useStore(live?.answer ?? NOTHING);
  if (!answer || answer.asked.concept !== edit.concept) return <p className="quiet inside">…</p>;
  const { box } = answer.asked;
  return (
    <div className="inside" data-box={[box.x1, box.y1, box.x2, box.y2].join()}>
      <p className="quiet">{words.inside}</p>
      <ul>
        {answer.check.concepts.slice(0, MOST).map((one) => (
          <InsideRow key={one.name} name={one.name} mean={one.mean} claimed={one.name === edit.concept} />
        ))}
      </ul>
      <Verdict edit={edit} check={answer.check} current={answers(answer, edit.box, edit.concept)} />
    </div>
  );
}

function InsideRow({ name, mean, claimed }: { name: string; mean: number; claimed: boolean }) {
  const words = useWords().reading;
  const { reading } = useSitting();
  const { language } = useStore(settings);
  return (
    <li className={claimed ? "claimed" : ""}>
      <span>{titleOf(reading, name, words)}</span>
      <span className="meter" aria-hidden="true">
        <i
          style={{ width: `${Math.max(mean, 0) * 100}%`, background: colourAt(positionOf(reading, name)) }}
        />
      </span>
      <span className="figure">{figure(mean, language)}</span>
    </li>
  );
}

function Verdict({ edit, check, current }: { edit: Edit; check: Check; current: boolean }) {
  const words = useWords().reading;
  const { reading, desk } = useSitting();
  if (useStore(desk.teaching)) return null;
  // While the hand moves, the answer is a moment old; once it rests, only the answer about this very box counts.
  if (!current && !edit.moving) return <p className="quiet">…</p>;
  const told = !edit.positive
    ? words.notChecked
    : check.mismatch
      ? words.objects(titleOf(reading, check.dominant, words))
      : check.silenced
        ? words.silenced
        : words.agrees;
  // Screen readers hear it once the hand rests: a sentence for every pixel would be noise.
  return (
    <p
      className={edit.positive && check.mismatch ? "verdict warned" : "verdict"}
      role={current && !edit.moving ? "status" : undefined}
    >
      {edit.positive && check.mismatch && "⚠ "}
      {told}
    </p>
  );
}

function Buttons({ edit, onExample }: { edit: Edit; onExample: (edit: Edit) => void }) {
  const all = useWords();
  const words = all.reading;
  const { desk, acts, busy, retrying } = useSitting();
  const teaching = useStore(desk.teaching);
  return (
    <>
      {busy && (
        <p role="status" className={retrying ? "verdict warned" : "verdict"}>
          {retrying ? words.unsaved : words.saving}
        </p>
      )}
      <div className="row end">
        <button type="button" onClick={acts.discard}>
          {words.discard} <kbd>Esc</kbd>
        </button>
        {edit.number !== null && (
          <button type="button" className="danger" disabled={busy} onClick={acts.remove}>
            {words.remove} <kbd>Del</kbd>
          </button>
        )}
        {teaching ? (
          <button type="button" className="primary" onClick={() => onExample(edit)}>
            {all.teaching.useExample} <kbd>⏎</kbd>
          </button>
        ) : (
          <button type="button" className="primary" disabled={busy || edit.moving} onClick={acts.apply}>
            {words.apply} <kbd>⏎</kbd>
          </button>
        )}
      </div>
    </>
  );
}

const NOTHING = { get: () => null, set: () => undefined, subscribe: () => () => undefined };
