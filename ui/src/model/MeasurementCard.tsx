import type { Measurement } from "../api/types";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";

import { Problem } from "../api/problems";
import { hasRole, session } from "../api/session";
import { formatNumber, formatDate, displayName, formatProbability } from "../lib/format";
import { useStore } from "../lib/store";
import { ErrorMessage } from "../components/ErrorMessage";
import { settings } from "../settings/settings";
import { useWords } from "../i18n/words";
import { isRunning, measureModel, type MeasurementJob, measurementJobs } from "./measurementJobs";
import { measurementQuery } from "./queries";

/** With fewer films, a difference of one or two films looks large; the page then adds a note. */
const FEW_FILMS = 100;

/** Scores on validation films: this model, its parent, and the trivial answer. */
export function MeasurementCard({ model, children }: { model: string; children?: ReactNode }) {
  const words = useWords().model;
  const queries = useQueryClient();
  const worth = useQuery(measurementQuery(model));
  const job = useStore(measurementJobs)[model];
  const done = job?.job?.state === "done";
  useEffect(() => {
    if (done) void queries.invalidateQueries({ queryKey: ["worth", model] });
  }, [queries, done, model]);
  return (
    <section className="card stack measurement" aria-labelledby="worth-title">
      <h2 id="worth-title">{words.measurement}</h2>
      <div className="measurement-body">
        <div className="stack">
          {worth.isError && <ErrorMessage error={worth.error} again={() => void worth.refetch()} />}
          {worth.data && <MeasurementTable worth={worth.data} />}
          <div role="status">{isRunning(job) && job && <MeasurementProgress measuring={job} />}</div>
          {job && <MeasurementError measuring={job} />}
          {worth.data === null && job === undefined && <NotMeasured model={model} />}
        </div>
        {children && <div className="stack">{children}</div>}
      </div>
    </section>
  );
}

function NotMeasured({ model }: { model: string }) {
  const words = useWords().model;
  const { me } = useStore(session);
  return (
    <div className="row">
      <p className="muted">{words.notMeasured}</p>
      {hasRole(me, "curator") && (
        <button type="button" onClick={() => void measureModel(model)}>
          {words.measure}
        </button>
      )}
    </div>
  );
}

function MeasurementProgress({ measuring }: { measuring: MeasurementJob }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const reached = measuring.job?.progress ?? 0;
  return (
    <div className="stack">
      <p>
        {words.measuring} {formatProbability(reached, { language, shares: "percent" })}
      </p>
      <progress value={reached} max={1} aria-label={words.measuring} />
      {measuring.job && (
        <p className="muted small" lang="en">
          {measuring.job.news}
        </p>
      )}
    </div>
  );
}

function MeasurementError({ measuring }: { measuring: MeasurementJob }) {
  const words = useWords().model;
  if (measuring.error instanceof Problem && measuring.error.code === "no_data_set") {
    return (
      <div className="hint">
        <p>{words.noDataSet}</p>
        <pre className="raw" tabIndex={0} aria-label={words.noDataSetCommand}>
          medgrape serve RUN --data DIR
        </pre>
      </div>
    );
  }
  if (measuring.error !== null) return <ErrorMessage error={measuring.error} />;
  if (measuring.job?.state === "failed") return <ErrorMessage error={new Error(measuring.job.news)} />;
  return measuring.job?.state === "cancelled" ? <p className="muted">{words.cancelled}</p> : null;
}

function MeasurementTable({ worth }: { worth: Measurement }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const { parent, standing, trivial } = worth;
  const rows = [
    [words.macroF1, "macro_f1"],
    [words.accuracy, "accuracy"],
  ] as const;
  return (
    <>
      {parent && <p className="measurement-summary">{words.changed(parent.changed, worth.films)}</p>}
      <div className="scroll-x">
        <table className="figures">
          <thead>
            <tr>
              <th scope="col">{words.onValidation(worth.films)}</th>
              {parent && (
                <th scope="col" className="number">
                  {words.before}
                </th>
              )}
              <th scope="col" className="number">
                {parent ? words.after : words.thisModel}
              </th>
              {parent && (
                <th scope="col" className="number">
                  {words.difference}
                </th>
              )}
              <th scope="col" className="number">
                {words.always(displayName(trivial.answer))}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([label, name]) => (
              <tr key={name}>
                <th scope="row">{label}</th>
                {parent && <td className="number">{formatNumber(parent[name], language, 3)}</td>}
                <td className="number strong">{formatNumber(standing[name], language, 3)}</td>
                {parent && (
                  <td className="number">
                    <Difference value={standing[name] - parent[name]} />
                  </td>
                )}
                <td className="number muted">{formatNumber(trivial[name], language, 3)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="muted small">
        {words.measuredOn(worth.data_set, formatDate(worth.measured_at, language))}
        {!worth.its_own && ` ${words.notItsOwn}`}
        {worth.films < FEW_FILMS && ` ${words.few(worth.films)}`}
      </p>
    </>
  );
}

function Difference({ value }: { value: number }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  if (Math.abs(value) < 0.0005) return <span className="muted">{words.same}</span>;
  const text = `${value > 0 ? "+" : "−"}${formatNumber(Math.abs(value), language, 3)}`;
  return (
    <span className={value > 0 ? "better" : "worse"}>
      <span aria-hidden="true">{value > 0 ? "▲ " : "▼ "}</span>
      {text}
    </span>
  );
}
