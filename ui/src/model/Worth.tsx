import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect } from "react";

import { Problem } from "../api/problems";
import { may, session } from "../api/session";
import { figure, moment, readable, share } from "../parts/format";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { isUnderWay, measure, type Measuring, measurings } from "./measuring";
import { type Worth as Measured, worthQuery } from "./queries";

/** With fewer films, one or two of them make a difference that looks large. */
const FEW = 100;

/** What a model gets on validation films: it, the one it was made from, and the trivial answer. */
export function Worth({ model, children }: { model: string; children?: ReactNode }) {
  const words = useWords().model;
  const queries = useQueryClient();
  const worth = useQuery(worthQuery(model));
  const measuring = useStore(measurings)[model];
  const done = measuring?.job?.state === "done";
  useEffect(() => {
    if (done) void queries.invalidateQueries({ queryKey: ["worth", model] });
  }, [queries, done, model]);
  return (
    <section className="card stack worth" aria-labelledby="worth-title">
      <h2 id="worth-title">{words.worth}</h2>
      <div className="worth-body">
        <div className="stack">
          {worth.isError && <Trouble error={worth.error} again={() => void worth.refetch()} />}
          {worth.data && <Figures worth={worth.data} />}
          <div role="status">{isUnderWay(measuring) && measuring && <Progress measuring={measuring} />}</div>
          {measuring && <Failure measuring={measuring} />}
          {worth.data === null && measuring === undefined && <Unmeasured model={model} />}
        </div>
        {children && <div className="stack">{children}</div>}
      </div>
    </section>
  );
}

function Unmeasured({ model }: { model: string }) {
  const words = useWords().model;
  const { me } = useStore(session);
  return (
    <div className="row">
      <p className="quiet">{words.notMeasured}</p>
      {may(me, "curator") && (
        <button type="button" onClick={() => void measure(model)}>
          {words.measure}
        </button>
      )}
    </div>
  );
}

function Progress({ measuring }: { measuring: Measuring }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const reached = measuring.job?.progress ?? 0;
  return (
    <div className="stack">
      <p>
        {words.measuring} {share(reached, { language, shares: "percent" })}
      </p>
      <progress value={reached} max={1} aria-label={words.measuring} />
      {measuring.job && (
        <p className="quiet small" lang="en">
          {measuring.job.news}
        </p>
      )}
    </div>
  );
}

function Failure({ measuring }: { measuring: Measuring }) {
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
  if (measuring.error !== null) return <Trouble error={measuring.error} />;
  if (measuring.job?.state === "failed") return <Trouble error={new Error(measuring.job.news)} />;
  return measuring.job?.state === "cancelled" ? <p className="quiet">{words.cancelled}</p> : null;
}

function Figures({ worth }: { worth: Measured }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const { parent, standing, trivial } = worth;
  const rows = [
    [words.macroF1, "macro_f1"],
    [words.accuracy, "accuracy"],
  ] as const;
  return (
    <>
      {parent && <p className="worth-told">{words.changed(parent.changed, worth.films)}</p>}
      <div className="scrolls">
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
                {words.always(readable(trivial.answer))}
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([told, name]) => (
              <tr key={name}>
                <th scope="row">{told}</th>
                {parent && <td className="number">{figure(parent[name], language, 3)}</td>}
                <td className="number strong">{figure(standing[name], language, 3)}</td>
                {parent && (
                  <td className="number">
                    <Difference value={standing[name] - parent[name]} />
                  </td>
                )}
                <td className="number quiet">{figure(trivial[name], language, 3)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className="quiet small">
        {words.measuredOn(worth.data_set, moment(worth.measured_at, language))}
        {!worth.its_own && ` ${words.notItsOwn}`}
        {worth.films < FEW && ` ${words.few(worth.films)}`}
      </p>
    </>
  );
}

function Difference({ value }: { value: number }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  if (Math.abs(value) < 0.0005) return <span className="quiet">{words.same}</span>;
  const told = `${value > 0 ? "+" : "−"}${figure(Math.abs(value), language, 3)}`;
  return (
    <span className={value > 0 ? "better" : "worse"}>
      <span aria-hidden="true">{value > 0 ? "▲ " : "▼ "}</span>
      {told}
    </span>
  );
}
