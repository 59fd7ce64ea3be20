import type { Probabilities, Step } from "../api/types";
import { useWords, type Words } from "../i18n/words";
import { displayName, formatDate, formatProbability } from "../lib/format";
import { useStore } from "../lib/store";
import { type Settings, settings } from "../settings/settings";
import { uncarriedCorrections } from "../teaching/teachingState";
import { describeCorrection } from "./conceptDisplay";
import { useReadingContext } from "./ReadingContext";

const SMALLEST_SHOWN = 0.005;

/** The corrections in force, and the history of all steps. */
export function CorrectionHistory() {
  const words = useWords().reading;
  const { studyData, actions, saving, locked } = useReadingContext();
  const { study } = studyData;
  return (
    <section className="block" aria-labelledby="corrections">
      <div className="row spread">
        <h2 id="corrections">{words.corrections}</h2>
        <span className="row">
          <button type="button" onClick={actions.undo} disabled={saving || locked || !study?.can_undo}>
            {words.undo}
          </button>
          <button type="button" onClick={actions.redo} disabled={saving || locked || !study?.can_redo}>
            {words.redo}
          </button>
        </span>
      </div>
      <UncarriedNotice />
      <Corrections />
      {studyData.steps.length > 0 && <Steps />}
    </section>
  );
}

function UncarriedNotice() {
  const words = useWords();
  const uncarried = useStore(uncarriedCorrections);
  if (uncarried === 0) return null;
  return (
    <div className="verdict warned row" role="status">
      <span className="grow">{words.teaching.notCarriedOver(uncarried)}</span>
      <button type="button" onClick={() => uncarriedCorrections.set(0)}>
        {words.common.close}
      </button>
    </div>
  );
}

function Corrections() {
  const words = useWords().reading;
  const { studyData, actions, takeStep, saving, locked } = useReadingContext();
  const corrections = studyData.shownStudy?.corrections ?? [];
  if (corrections.length === 0) return <p className="muted">{words.noCorrections}</p>;
  return (
    <ol className="corrections">
      {corrections.map((correction, index) => {
        const sentence = describeCorrection(studyData, correction, words);
        return (
          <li key={index}>
            {correction.box ? (
              <button
                type="button"
                className="plain grow"
                disabled={locked}
                aria-label={words.select(sentence)}
                onClick={() => actions.selectCorrection(index)}
              >
                {index + 1}. {sentence}
              </button>
            ) : (
              <span className="grow no-box">
                {index + 1}. {sentence}
              </span>
            )}
            {correction.check?.mismatch && <span className="badge warn">{words.confirmed}</span>}
            <button
              type="button"
              className="plain"
              disabled={saving || locked}
              aria-label={words.withdraw(sentence)}
              title={words.withdraw(sentence)}
              onClick={() => takeStep({ kind: "withdraw", correctionIndex: index })}
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
  const { viewer, studyData, actions } = useReadingContext();
  const historyStep = useStore(viewer.historyStep);
  const last = studyData.study?.revision ?? 0;
  const shownStep = historyStep ?? last;
  return (
    <>
      <div className="row spread">
        <h3>{words.history}</h3>
        <span className="row">
          <button
            type="button"
            aria-label={words.earlier}
            title={words.earlier}
            disabled={shownStep === 0}
            onClick={() => actions.moveInHistory(-1)}
          >
            ◂
          </button>
          <span className="muted">
            {historyStep === null
              ? words.currentState
              : shownStep === 0
                ? words.beforeCorrections
                : words.step(shownStep, last)}
          </span>
          <button
            type="button"
            aria-label={words.later}
            title={words.later}
            disabled={historyStep === null}
            onClick={() => actions.moveInHistory(1)}
          >
            ▸
          </button>
        </span>
      </div>
      <ol className="steps" reversed>
        {[...studyData.steps].reverse().map((step) => (
          <StepRow key={step.step} step={step} current={step.step === shownStep} />
        ))}
      </ol>
    </>
  );
}

function StepRow({ step, current }: { step: Step; current: boolean }) {
  const words = useWords().reading;
  const preferences = useStore(settings);
  const { studyData } = useReadingContext();
  const describe = ({ kind, about, correction }: Step) => {
    const what = words.stepKinds[about](describeCorrection(studyData, correction, words));
    return kind === about ? what : words.stepKinds[kind](what);
  };
  return (
    <li className={current ? "current" : ""} aria-current={current ? "step" : undefined}>
      <span>{describe(step)}</span>
      {step.reason && <q>{step.reason}</q>}
      <span className="muted">{describeChanges(step.before, step.after, words, preferences)}</span>
      <span className="muted small">
        {step.by}, {formatDate(step.at, preferences.language)}
      </span>
    </li>
  );
}

/** The two probabilities that a step changed most. */
export function describeChanges(
  before: Probabilities,
  after: Probabilities,
  words: Words["reading"],
  preferences: Settings,
): string {
  const changes = Object.entries(after)
    .map(([name, now]) => ({ name, now, then: before[name] ?? 0 }))
    .filter(({ now, then }) => Math.abs(now - then) >= SMALLEST_SHOWN)
    .sort((a, b) => Math.abs(b.now - b.then) - Math.abs(a.now - a.then))
    .slice(0, 2)
    .map(({ name, now, then }) =>
      words.probabilityChange(
        displayName(name),
        formatProbability(then, preferences),
        formatProbability(now, preferences),
      ),
    );
  return changes.length > 0 ? changes.join(", ") : words.noChange;
}
