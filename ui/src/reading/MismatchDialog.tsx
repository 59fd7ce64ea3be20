import { useState } from "react";

import { Dialog } from "../components/Dialog";
import type { Box } from "../film/box";
import { useWords } from "../i18n/words";
import { formatNumber } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { conceptColour, conceptTitle } from "./conceptDisplay";
import { useReadingContext } from "./ReadingContext";
import type { MismatchWarning } from "./useStudyData";

interface Props {
  warning: MismatchWarning;
  onCancel: () => void;
  onChange: (concept: string) => void;
  onConfirm: (reason: string) => void;
}

/** Warns that the model sees another finding in the box. Nothing is applied until the person decides. */
export function MismatchDialog({ warning, onCancel, onChange, onConfirm }: Props) {
  const words = useWords().reading;
  const { studyData } = useReadingContext();
  const { language } = useStore(settings);
  const { check } = warning;
  const means = new Map(
    check.concepts.map((concept) => [concept.name, formatNumber(concept.mean, language)]),
  );
  const [claimed, dominant] = [
    conceptTitle(studyData, check.claimed, words),
    conceptTitle(studyData, check.rival, words),
  ];
  return (
    <Dialog title={words.mismatchTitle} onClose={onCancel} wide urgent describedBy="mismatch-text">
      <div className="stack mismatch">
        <p className="lead" id="mismatch-text">
          {words.youSaid(claimed)}{" "}
          <strong>
            {words.itSees(dominant, means.get(check.rival) ?? "", means.get(check.claimed) ?? "")}
          </strong>{" "}
          {words.nothingApplied}
        </p>
        <div className="pair">
          <MapInBox
            concept={check.claimed}
            box={warning.request.statement.box}
            title={words.youSaidMap(claimed)}
          />
          <MapInBox
            concept={check.rival}
            box={warning.request.statement.box}
            title={words.itSeesMap(dominant)}
          />
        </div>
        <p className="muted">
          {words.threshold(formatNumber(check.gap, language, 3), formatNumber(check.allowed, language, 3))}{" "}
          {!check.calibrated && words.uncalibrated}
        </p>
        <DecisionForm warning={warning} onCancel={onCancel} onChange={onChange} onConfirm={onConfirm} />
      </div>
    </Dialog>
  );
}

function DecisionForm({ warning, onCancel, onChange, onConfirm }: Props) {
  const all = useWords();
  const words = all.reading;
  const { studyData, saving } = useReadingContext();
  const [reason, setReason] = useState("");
  const [otherConcept, setOther] = useState("");
  const hasReason = reason.trim().length > 0;
  const { claimed, rival } = warning.check;
  const otherConcepts = studyData.concepts.filter(
    (concept) => concept.name !== claimed && concept.name !== rival,
  );
  return (
    <>
      <div className="row">
        <button type="button" className="primary" autoFocus onClick={onCancel}>
          {all.common.cancel}
        </button>
        <button type="button" disabled={saving} onClick={() => onChange(rival)}>
          {words.changeTo(conceptTitle(studyData, rival, words))}
        </button>
        {otherConcepts.length > 0 && (
          <label className="row">
            <span className="muted">{words.orAnother}</span>
            <select value={otherConcept} disabled={saving} onChange={(event) => setOther(event.target.value)}>
              <option value="" disabled>
                …
              </option>
              {otherConcepts.map((concept) => (
                <option key={concept.name} value={concept.name}>
                  {concept.title}
                </option>
              ))}
            </select>
          </label>
        )}
        {otherConcepts.length > 0 && (
          <button
            type="button"
            disabled={saving || otherConcept === ""}
            onClick={() => onChange(otherConcept)}
          >
            {words.change}
          </button>
        )}
      </div>
      <form
        className="confirm-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (hasReason) onConfirm(reason.trim());
        }}
      >
        <label className="field">
          <span>{words.reason}</span>
          <textarea
            rows={2}
            maxLength={500}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
        </label>
        <button
          type="submit"
          className="danger"
          disabled={!hasReason || saving}
          title={hasReason ? undefined : words.reasonNeeded}
        >
          {words.applyAnyway}
        </button>
      </form>
    </>
  );
}

/** The film around the box, with one finding's map over it. */
function MapInBox({ concept, box, title }: { concept: string; box: Box; title: string }) {
  const { studyData, viewer } = useReadingContext();
  const { study, film } = studyData;
  if (!study || !film) return null;
  const { width, height } = film.facts.size;
  const view = cropAround(box, width, height);
  const map = `/api/v1/films/${viewer.film}/maps/${concept}.png?model=${study.model}&side=512`;
  const colour = conceptColour(studyData, concept);
  return (
    <figure>
      <svg viewBox={`${view.x} ${view.y} ${view.width} ${view.height}`} role="img" aria-label={title}>
        <image
          href={`/api/v1/films/${viewer.film}/picture.png?side=1024`}
          width={width}
          height={height}
          preserveAspectRatio="none"
        />
        <image href={map} width={width} height={height} preserveAspectRatio="none" />
        <rect
          x={box.x1}
          y={box.y1}
          width={box.x2 - box.x1}
          height={box.y2 - box.y1}
          fill="none"
          stroke={colour}
          strokeWidth={view.width / 110}
        />
      </svg>
      <figcaption>
        <i className="swatch" style={{ background: colour }} /> {title}
      </figcaption>
    </figure>
  );
}

/** A square 2.6 times as wide as the box; inside the film where it fits, else around the whole film. */
export function cropAround(box: Box, width: number, height: number) {
  const wanted = Math.max(box.x2 - box.x1, box.y2 - box.y1, Math.min(width, height) / 8) * 2.6;
  const side = Math.min(wanted, Math.max(width, height));
  const within = (middle: number, most: number) =>
    side >= most ? (most - side) / 2 : Math.min(Math.max(middle - side / 2, 0), most - side);
  return {
    x: within((box.x1 + box.x2) / 2, width),
    y: within((box.y1 + box.y2) / 2, height),
    width: side,
    height: side,
  };
}
