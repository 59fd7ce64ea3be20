import { useEffect } from "react";

import { connection } from "../api/serverConnection";
import type { Check, Film } from "../api/types";
import type { Box } from "../film/box";
import type { BoxDraft } from "../film/viewerState";
import { useWords, type Words } from "../i18n/words";
import { formatNumber } from "../lib/format";
import { useStore } from "../lib/store";
import { type Settings, settings } from "../settings/settings";
import { conceptColour, conceptTitle } from "./conceptDisplay";
import { isResultFor } from "./liveCheck";
import { useReadingContext } from "./ReadingContext";

const MOST_SHOWN = 4;

/** Card of the current box: the claimed finding, the model's live check, and the buttons. */
export function BoxCard({ onExample }: { onExample: (draft: BoxDraft) => void }) {
  const { viewer, liveCheck } = useReadingContext();
  const draft = useStore(viewer.draft);
  useEffect(() => {
    // Subscribe to the store directly; waiting for a React render would cost a frame.
    const requestCheck = () => {
      const current = viewer.draft.get();
      liveCheck?.request(current && { box: current.box, concept: current.concept });
    };
    requestCheck();
    const unsubscribers = [
      viewer.draft.subscribe(requestCheck),
      connection.subscribe(() => !connection.get().lost && requestCheck()),
    ];
    return () => {
      for (const unsubscribe of unsubscribers) unsubscribe();
    };
  }, [viewer, liveCheck]);
  return draft && <Card draft={draft} onExample={onExample} />;
}

function Card({ draft, onExample }: { draft: BoxDraft; onExample: (draft: BoxDraft) => void }) {
  const words = useWords().reading;
  const { viewer, studyData } = useReadingContext();
  const preferences = useStore(settings);
  const teaching = useStore(viewer.teaching);
  const size = boxSizeText(draft.box, studyData.film, preferences, words);
  return (
    <section
      className="box-card"
      aria-label={draft.correctionIndex === null ? words.newBox : words.boxNumber(draft.correctionIndex + 1)}
    >
      <div className="row spread">
        <strong>
          {draft.correctionIndex === null ? words.newBox : words.boxNumber(draft.correctionIndex + 1)}
        </strong>
        <span className="muted">{size}</span>
      </div>
      {!teaching && <StatementSelects draft={draft} />}
      <InsideBox draft={draft} />
      <Buttons draft={draft} onExample={onExample} />
    </section>
  );
}

function StatementSelects({ draft }: { draft: BoxDraft }) {
  const words = useWords().reading;
  const { viewer, studyData } = useReadingContext();
  const change = (changed: Partial<BoxDraft>) => viewer.draft.set({ ...draft, ...changed });
  return (
    <div className="row">
      <label className="grow">
        <span className="visually-hidden">{words.finding}</span>
        <select value={draft.concept} onChange={(event) => change({ concept: event.target.value })}>
          {studyData.concepts.map((concept) => (
            <option key={concept.name} value={concept.name}>
              {concept.title}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span className="visually-hidden">{words.isHere}</span>
        <select
          value={draft.positive ? "here" : "not"}
          onChange={(event) => change({ positive: event.target.value === "here" })}
        >
          <option value="here">{words.isHere}</option>
          <option value="not">{words.isNotHere}</option>
        </select>
      </label>
    </div>
  );
}

/** What the model sees inside the box, updated while the box is being drawn. */
function InsideBox({ draft }: { draft: BoxDraft }) {
  const words = useWords().reading;
  const { liveCheck } = useReadingContext();
  const result = useStore(liveCheck?.result ?? NO_RESULT);
  if (!result || result.request.concept !== draft.concept) return <p className="muted box-check">…</p>;
  const { box } = result.request;
  return (
    <div className="box-check" data-box={[box.x1, box.y1, box.x2, box.y2].join()}>
      <p className="muted">{words.inside}</p>
      <ul>
        {result.check.concepts.slice(0, MOST_SHOWN).map((concept) => (
          <InsideRow
            key={concept.name}
            name={concept.name}
            mean={concept.mean}
            claimed={concept.name === draft.concept}
          />
        ))}
      </ul>
      <Verdict draft={draft} check={result.check} current={isResultFor(result, draft.box, draft.concept)} />
    </div>
  );
}

function InsideRow({ name, mean, claimed }: { name: string; mean: number; claimed: boolean }) {
  const words = useWords().reading;
  const { studyData } = useReadingContext();
  const { language } = useStore(settings);
  return (
    <li className={claimed ? "claimed" : ""}>
      <span>{conceptTitle(studyData, name, words)}</span>
      <span className="meter" aria-hidden="true">
        <i style={{ width: `${Math.max(mean, 0) * 100}%`, background: conceptColour(studyData, name) }} />
      </span>
      <span className="figure">{formatNumber(mean, language)}</span>
    </li>
  );
}

function Verdict({ draft, check, current }: { draft: BoxDraft; check: Check; current: boolean }) {
  const words = useWords().reading;
  const { studyData, viewer } = useReadingContext();
  if (useStore(viewer.teaching)) return null;
  // During a drag the result may be a moment old. After it, only the result for exactly this box counts.
  if (!current && !draft.moving) return <p className="muted">…</p>;
  const verdict = !draft.positive
    ? words.notChecked
    : check.mismatch
      ? words.objects(conceptTitle(studyData, check.dominant, words))
      : check.silenced
        ? words.silenced
        : words.agrees;
  // Screen readers announce only the final verdict, not every change during the drag.
  return (
    <p
      className={draft.positive && check.mismatch ? "verdict warned" : "verdict"}
      role={current && !draft.moving ? "status" : undefined}
    >
      {draft.positive && check.mismatch && "⚠ "}
      {verdict}
    </p>
  );
}

function Buttons({ draft, onExample }: { draft: BoxDraft; onExample: (draft: BoxDraft) => void }) {
  const all = useWords();
  const words = all.reading;
  const { viewer, actions, saving, retrying } = useReadingContext();
  const teaching = useStore(viewer.teaching);
  return (
    <>
      {saving && (
        <p role="status" className={retrying ? "verdict warned" : "verdict"}>
          {retrying ? words.unsaved : words.saving}
        </p>
      )}
      <div className="row end">
        <button type="button" onClick={actions.discardDraft}>
          {words.discard} <kbd>Esc</kbd>
        </button>
        {draft.correctionIndex !== null && (
          <button type="button" className="danger" disabled={saving} onClick={actions.removeBox}>
            {words.remove} <kbd>Del</kbd>
          </button>
        )}
        {teaching ? (
          <button type="button" className="primary" onClick={() => onExample(draft)}>
            {all.teaching.useExample} <kbd>⏎</kbd>
          </button>
        ) : (
          <button
            type="button"
            className="primary"
            disabled={saving || draft.moving}
            onClick={actions.applyDraft}
          >
            {words.apply} <kbd>⏎</kbd>
          </button>
        )}
      </div>
    </>
  );
}

const NO_RESULT = { get: () => null, set: () => undefined, subscribe: () => () => undefined };

/** Width and height of a box in the unit that the user prefers; in pixels where the film's spacing is unknown. */
export function boxSizeText(
  box: Box,
  film: Film | undefined,
  preferences: Settings,
  words: Words["reading"],
): string {
  const spacing = preferences.lengths === "millimetres" ? film?.facts.spacing : null;
  const [rowSpacing, columnSpacing] = spacing ?? [1, 1];
  const format = (value: number) => formatNumber(value, preferences.language, 0);
  return words.size(
    format((box.x2 - box.x1) * columnSpacing),
    format((box.y2 - box.y1) * rowSpacing),
    spacing ? words.millimetres : words.pixels,
  );
}
