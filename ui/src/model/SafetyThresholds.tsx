import type { ModelCard } from "../api/types";
import { useWords } from "../i18n/words";
import { displayName, formatNumber } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { textAt } from "./trainingMetrics";

/** Thresholds of the safety check and how they were calibrated. */
export function SafetyThresholds({ card }: { card: ModelCard }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const { calibrated, origin, leads, gate, unbelieved } = card.safety_rule;
  const why = textAt(card.metrics, "safety_not_calibrated");
  return (
    <section className="card stack" aria-labelledby="safety-title">
      <div className="row">
        <h2 id="safety-title">{words.safety}</h2>
        <span className={calibrated ? "badge good" : "badge warn"}>
          {calibrated ? words.calibrated : words.notCalibrated}
        </span>
      </div>
      <p lang="en">{origin}</p>
      {!calibrated && <p className="film-warning">{words.recalibrate}</p>}
      {!calibrated && why && (
        <p className="muted small" lang="en">
          {why}
        </p>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">{words.concept}</th>
            <th scope="col" className="number">
              {words.lead}
            </th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(leads).map(([name, lead]) => (
            <tr key={name}>
              <th scope="row">{displayName(name)}</th>
              <td className="number">{formatNumber(lead, language, 3)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="small">{gate === null ? words.gateOpen : words.gate(formatNumber(gate, language, 5))}</p>
      {unbelieved.length > 0 && (
        <p className="small">
          {words.neverWarns}: {unbelieved.map(displayName).join(", ")}.
        </p>
      )}
      {card.safety !== null && (
        <details>
          <summary>{words.rawSafety}</summary>
          <pre className="raw" tabIndex={0} aria-label={words.rawSafety}>
            {JSON.stringify(card.safety, null, 2)}
          </pre>
        </details>
      )}
    </section>
  );
}
