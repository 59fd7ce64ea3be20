import type { Shares, Step } from "../api/types";
import { moment, readable, share } from "../parts/format";
import { useStore } from "../parts/store";
import { type Settings, settings } from "../settings/settings";
import { leftBehind } from "../teaching/lesson";
import { useWords, type Words } from "../words/words";
import { said, useSitting } from "./sitting";

const WORTH_TELLING = 0.005;

/** Corrections in force, each to be selected or removed, and every step that led here, to be stepped through. */
export function History() {
  const words = useWords().reading;
  const { reading, acts, busy, locked } = useSitting();
  const { study } = reading;
  return (
    <section className="block" aria-labelledby="corrections">
      <div className="row spread">
        <h2 id="corrections">{words.corrections}</h2>
        <span className="row">
          <button type="button" onClick={acts.undo} disabled={busy || locked || !study?.can_undo}>
            {words.undo}
          </button>
          <button type="button" onClick={acts.redo} disabled={busy || locked || !study?.can_redo}>
            {words.redo}
          </button>
        </span>
      </div>
      <LeftBehind />
      <Corrections />
      {reading.steps.length > 0 && <Steps />}
    </section>
  );
}

function LeftBehind() {
  const words = useWords();
  const left = useStore(leftBehind);
  if (left === 0) return null;
  return (
    <div className="verdict warned row" role="status">
      <span className="grow">{words.teaching.leftBehind(left)}</span>
      <button type="button" onClick={() => leftBehind.set(0)}>
        {words.common.close}
      </button>
    </div>
  );
}

function Corrections() {
  const words = useWords().reading;
  const { reading, acts, step, busy, locked } = useSitting();
  const corrections = reading.shown?.corrections ?? [];
  if (corrections.length === 0) return <p className="quiet">{words.noCorrections}</p>;
  return (
    <ol className="corrections">
      {corrections.map((one, number) => {
        const what = said(reading, one, words);
        return (
          <li key={number}>
            {one.box ? (
              <button
                type="button"
                className="plain grow"
                disabled={locked}
                aria-label={words.select(what)}
                onClick={() => acts.select(number)}
              >
                {number + 1}. {what}
              </button>
            ) : (
              <span className="grow unboxed">
                {number + 1}. {what}
              </span>
            )}
            {one.check?.mismatch && <span className="badge warn">{words.confirmed}</span>}
            <button
              type="button"
              className="plain"
              disabled={busy || locked}
              aria-label={words.withdraw(what)}
              title={words.withdraw(what)}
              onClick={() => step({ kind: "withdraw", number })}
            >
              ✕
            </button>
          </li>
        );
      })}
    </ol>
  );
}

function Steps() {
  const words = useWords().reading;
  const { desk, reading, acts } = useSitting();
  const back = useStore(desk.back);
  const last = reading.study?.revision ?? 0;
  const at = back ?? last;
  return (
    <>
      <div className="row spread">
        <h3>{words.history}</h3>
        <span className="row">
          <button
            type="button"
            aria-label={words.earlier}
            title={words.earlier}
            disabled={at === 0}
            onClick={() => acts.lookBack(-1)}
          >
            ◂
          </button>
          <span className="quiet">
            {back === null ? words.now : at === 0 ? words.atFirst : words.step(at, last)}
          </span>
          <button
            type="button"
            aria-label={words.later}
            title={words.later}
            disabled={back === null}
            onClick={() => acts.lookBack(1)}
          >
            ▸
          </button>
        </span>
      </div>
      <ol className="steps" reversed>
        {[...reading.steps].reverse().map((one) => (
          <StepRow key={one.step} one={one} current={one.step === at} />
        ))}
      </ol>
    </>
  );
}

function StepRow({ one, current }: { one: Step; current: boolean }) {
  const words = useWords().reading;
  const liking = useStore(settings);
  const { reading } = useSitting();
  const told = ({ kind, about, correction }: Step) => {
    const what = words.did[about](said(reading, correction, words));
    return kind === about ? what : words.did[kind](what);
  };
  return (
    <li className={current ? "current" : ""} aria-current={current ? "step" : undefined}>
      <span>{told(one)}</span>
      {one.reason && <q>{one.reason}</q>}
      <span className="quiet">{moved(one.before, one.after, words, liking)}</span>
      <span className="quiet small">
        {one.by}, {moment(one.at, liking.language)}
      </span>
    </li>
  );
}

/** Which probabilities a step moved, the most moved one first. */
export function moved(before: Shares, after: Shares, words: Words["reading"], liking: Settings): string {
  const told = Object.entries(after)
    .map(([name, now]) => ({ name, now, then: before[name] ?? 0 }))
    .filter(({ now, then }) => Math.abs(now - then) >= WORTH_TELLING)
    .sort((one, other) => Math.abs(other.now - other.then) - Math.abs(one.now - one.then))
    .slice(0, 2)
    .map(({ name, now, then }) =>
      words.fromToShares(readable(name), share(then, liking), share(now, liking)),
    );
  return told.length > 0 ? told.join(", ") : words.unmoved;
}
