import { useState } from "react";

import { Dialog } from "../parts/Dialog";
import { figure } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import type { Box } from "../film/box";
import { positionOf, titleOf, useSitting } from "./sitting";
import { colourAt } from "./palette";
import type { Doubt } from "./useReading";

interface Props {
  doubt: Doubt;
  onCancel: () => void;
  onChange: (concept: string) => void;
  onConfirm: (reason: string) => void;
}

/** Before any harm: the model sees something else in the box. Nothing was applied, and nothing is until one decides. */
export function DoubtDialog({ doubt, onCancel, onChange, onConfirm }: Props) {
  const words = useWords().reading;
  const { reading } = useSitting();
  const { language } = useStore(settings);
  const { check } = doubt;
  const means = new Map(check.concepts.map((one) => [one.name, figure(one.mean, language)]));
  const [claimed, dominant] = [titleOf(reading, check.claimed, words), titleOf(reading, check.rival, words)];
  return (
    <Dialog title={words.doubtTitle} onClose={onCancel} wide urgent describedBy="doubt-told">
      <div className="stack doubt">
        <p className="lead" id="doubt-told">
          {words.youSaid(claimed)}{" "}
          <strong>
            {words.itSees(dominant, means.get(check.rival) ?? "", means.get(check.claimed) ?? "")}
          </strong>{" "}
          {words.nothingApplied}
        </p>
        <div className="pair">
          <MapInBox concept={check.claimed} box={doubt.asked.said.box} title={words.youSaidMap(claimed)} />
          <MapInBox concept={check.rival} box={doubt.asked.said.box} title={words.itSeesMap(dominant)} />
        </div>
        <p className="quiet">
          {words.threshold(figure(check.gap, language, 3), figure(check.allowed, language, 3))}{" "}
          {!check.calibrated && words.uncalibrated}
        </p>
        <Choices doubt={doubt} onCancel={onCancel} onChange={onChange} onConfirm={onConfirm} />
      </div>
    </Dialog>
  );
}

function Choices({ doubt, onCancel, onChange, onConfirm }: Props) {
  const all = useWords();
  const words = all.reading;
  const { reading, busy } = useSitting();
  const [reason, setReason] = useState("");
  const [other, setOther] = useState("");
  const given = reason.trim().length > 0;
  const { claimed, rival } = doubt.check;
  const others = reading.concepts.filter((one) => one.name !== claimed && one.name !== rival);
  return (
    <>
      <div className="row">
        <button type="button" className="primary" autoFocus onClick={onCancel}>
          {all.common.cancel}
        </button>
        <button type="button" disabled={busy} onClick={() => onChange(rival)}>
          {words.changeTo(titleOf(reading, rival, words))}
        </button>
        {others.length > 0 && (
          <label className="row">
            <span className="quiet">{words.orAnother}</span>
            <select value={other} disabled={busy} onChange={(event) => setOther(event.target.value)}>
              <option value="" disabled>
                …
              </option>
              {others.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.title}
                </option>
              ))}
            </select>
          </label>
        )}
        {others.length > 0 && (
          <button type="button" disabled={busy || other === ""} onClick={() => onChange(other)}>
            {words.change}
          </button>
        )}
      </div>
      <form
        className="anyway"
        onSubmit={(event) => {
          event.preventDefault();
          if (given) onConfirm(reason.trim());
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
          disabled={!given || busy}
          title={given ? undefined : words.reasonNeeded}
        >
          {words.applyAnyway}
        </button>
      </form>
    </>
  );
}

/** A part of the film around the box, with one finding's map over it. */
function MapInBox({ concept, box, title }: { concept: string; box: Box; title: string }) {
  const { reading, desk } = useSitting();
  const { study, film } = reading;
  if (!study || !film) return null;
  const { width, height } = film.facts.size;
  const view = surroundings(box, width, height);
  const map = `/api/v1/films/${desk.film}/maps/${concept}.png?model=${study.model}&side=512`;
  const colour = colourAt(positionOf(reading, concept));
  return (
    <figure>
      <svg viewBox={`${view.x} ${view.y} ${view.width} ${view.height}`} role="img" aria-label={title}>
        <image
          href={`/api/v1/films/${desk.film}/picture.png?side=1024`}
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

/** A square about three times as large as the box: inside the film where it fits, else around all of it. */
export function surroundings(box: Box, width: number, height: number) {
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
