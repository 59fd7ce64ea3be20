import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";

import { Problem } from "../api/problems";
import { hasRole, session } from "../api/session";
import type { Measurement } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { displayName, formatDate, formatNumber, formatProbability } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { isRunning, type MeasurementJob, measurementJobs, measureModel } from "./measurementJobs";
import { measurementQuery } from "./queries";

/** With fewer films, a difference of one or two films looks large; the page then adds a note. */
const FEW_FILMS = 100;

/** Scores on validation films: this model, its parent, and the trivial answer. */
export function MeasurementCard({ model, children }: { model: string; children?: ReactNode }) {
  const words = useWords().model;
  const queryClient = useQueryClient();
  const measurement = useQuery(measurementQuery(model));
  const job = useStore(measurementJobs)[model];
  const done = job?.serverJob?.state === "done";
  useEffect(() => {
    if (done) void queryClient.invalidateQueries({ queryKey: ["worth", model] });
  }, [queryClient, done, model]);
  return (
    <section className="card stack measurement" aria-labelledby="measurement-title">
      <h2 id="measurement-title">{words.measurement}</h2>
      <div className="measurement-body">
        <div className="stack">
          {measurement.isError && (
            <ErrorMessage error={measurement.error} onRetry={() => void measurement.refetch()} />
          )}
          {measurement.data && <MeasurementTable measurement={measurement.data} />}
          <div role="status">{isRunning(job) && job && <MeasurementProgress job={job} />}</div>
          {job && <MeasurementError job={job} />}
          {measurement.data === null && job === undefined && <NotMeasured model={model} />}
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

function MeasurementProgress({ job }: { job: MeasurementJob }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const reached = job.serverJob?.progress ?? 0;
  return (
    <div className="stack">
      <p>
        {words.measuring} {formatProbability(reached, { language, shares: "percent" })}
      </p>
      <progress value={reached} max={1} aria-label={words.measuring} />
      {job.serverJob && (
        <p className="muted small" lang="en">
          {job.serverJob.news}
        </p>
      )}
    </div>
  );
}

function MeasurementError({ job }: { job: MeasurementJob }) {
  const words = useWords().model;
  if (job.error instanceof Problem && job.error.code === "no_data_set") {
    return (
      <div className="hint">
        <p>{words.noDataSet}</p>
        <pre className="raw" tabIndex={0} aria-label={words.noDataSetCommand}>
          medgrape serve RUN --data DIR
        </pre>
      </div>
    );
  }
  if (job.error !== null) return <ErrorMessage error={job.error} />;
  if (job.serverJob?.state === "failed") return <ErrorMessage error={new Error(job.serverJob.news)} />;
  return job.serverJob?.state === "cancelled" ? <p className="muted">{words.cancelled}</p> : null;
}

function MeasurementTable({ measurement }: { measurement: Measurement }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const { parent, standing, trivial } = measurement;
  const rows = [
    [words.macroF1, "macro_f1"],
    [words.accuracy, "accuracy"],
  ] as const;
  return (
    <>
      {parent && <p className="measurement-summary">{words.changed(parent.changed, measurement.films)}</p>}
      <div className="scroll-x">
        <table className="figures">
          <thead>
            <tr>
              <th scope="col">{words.onValidation(measurement.films)}</th>
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
        {words.measuredOn(measurement.data_set, formatDate(measurement.measured_at, language))}
        {!measurement.its_own && ` ${words.notItsOwn}`}
        {measurement.films < FEW_FILMS && ` ${words.few(measurement.films)}`}
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
