import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import type { EvaluationReport } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords, type Words } from "../i18n/words";
import { displayName, formatNumber } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { evaluationQuery } from "./queries";
import { SubgroupAudit } from "./SubgroupAudit";

/** The evaluation report and subgroup audit of this model, if it has them. */
export function Evaluation({ model }: { model: string }) {
  const { model: words, common } = useWords();
  const evaluation = useQuery(evaluationQuery(model));
  if (evaluation.isPending) return <p className="muted">{common.loading}</p>;
  if (evaluation.isError)
    return <ErrorMessage error={evaluation.error} onRetry={() => void evaluation.refetch()} />;
  const { report, audit, how } = evaluation.data;
  return (
    <>
      <section className="card stack" aria-labelledby="evaluation-title">
        <h2 id="evaluation-title">{words.evaluation}</h2>
        {report ? <ReportTables report={report} /> : <p>{words.noEvaluation}</p>}
        {how && (
          <p className="muted small" lang="en">
            {how}
          </p>
        )}
      </section>
      {audit && <SubgroupAudit audit={audit} />}
    </>
  );
}

interface Row {
  question: string;
  value: number | null;
  low?: number | null;
  high?: number | null;
  /** The score without looking at the film. */
  trivial: string;
}

/** The evaluation report. Each score stands beside its trivial baseline. */
function ReportTables({ report }: { report: EvaluationReport }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const format = (value: number | null | undefined) =>
    value === null || value === undefined ? words.notAvailable : formatNumber(value, language, 3);
  return (
    <>
      <p className="muted small">
        {words.evaluationOn(report.films.read, report.films.patients, report.split, report.data_set)}
        {report.known_films > 0 && ` ${words.knownFilms(report.known_films)}`}
        {!report.its_own && ` ${words.notItsOwn}`}
      </p>
      <div className="scroll-x">
        <table className="figures">
          <thead>
            <tr>
              <th scope="col">{words.question}</th>
              <th scope="col" className="number">
                {words.model}
              </th>
              <th scope="col">{words.interval}</th>
              <th scope="col">{words.trivial}</th>
            </tr>
          </thead>
          <tbody>
            {reportRows(report, words, format).map((row) => (
              <tr key={row.question}>
                <th scope="row">{row.question}</th>
                <td className="number strong">{format(row.value)}</td>
                <td>
                  {row.low === null || row.low === undefined
                    ? ""
                    : words.intervalRange(format(row.low), format(row.high))}
                </td>
                <td className="muted">{row.trivial}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="cards inner">
        <ClassTable report={report} format={format} />
        <PointingTable report={report} format={format} />
      </div>
      {report.warnings.length > 0 && (
        <div className="hint">
          <h3>{words.warnings}</h3>
          <ul className="bullets" lang="en">
            {report.warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

type Format = (value: number | null | undefined) => string;

function reportRows(report: EvaluationReport, words: Words["model"], format: Format): Row[] {
  const { classification, pointing, safety } = report;
  const { majority, macro_f1: f1 } = classification;
  const always = (value: number | undefined) =>
    majority && value !== undefined
      ? words.alwaysAnswer(format(value), displayName(majority.answer))
      : words.notAvailable;
  const rows: Row[] = [
    { question: words.questions.macroF1, ...f1, trivial: always(majority?.macro_f1) },
    {
      question: words.questions.accuracy,
      value: classification.accuracy,
      trivial: always(majority?.accuracy),
    },
    { question: words.questions.auc, value: classification.macro_auc, trivial: words.byChance(format(0.5)) },
  ];
  if (pointing) {
    const fixed = pointing.fixed === null ? null : format(pointing.fixed);
    const trivial = words.pointingTrivial(format(pointing.chance), fixed);
    rows.push({ question: words.questions.pointing, ...pointing.mean, trivial });
  }
  return safety ? [...rows, ...safetyRows(safety, words, format)] : rows;
}

function safetyRows(
  safety: NonNullable<EvaluationReport["safety"]>,
  words: Words["model"],
  format: Format,
): Row[] {
  const kinds = [
    ["caught", words.questions.caught],
    ["false_alarms", words.questions.falseAlarms],
    ["balanced", words.questions.balanced],
  ] as const;
  return kinds.flatMap(([kind, question]) => {
    const own = safety.own[kind];
    if (!own) return [];
    const baseline = safety.majority?.[kind];
    return [
      {
        question,
        ...own,
        trivial: baseline ? words.mostCommonFinding(format(baseline.value)) : words.notAvailable,
      },
    ];
  });
}

function ClassTable({ report, format }: { report: EvaluationReport; format: Format }) {
  const words = useWords().model;
  return (
    <NumberTable
      title={words.byClass}
      firstColumn={words.class}
      columns={[words.support, words.f1, words.precision, words.recall, words.aucShort]}
    >
      {report.classification.classes.map((row) => (
        <tr key={row.name}>
          <th scope="row">{displayName(row.name)}</th>
          <td className="number">{row.support}</td>
          <td className="number">{format(row.f1)}</td>
          <td className="number">{format(row.precision)}</td>
          <td className="number">{format(row.recall)}</td>
          <td className="number">{format(row.auc)}</td>
        </tr>
      ))}
    </NumberTable>
  );
}

function PointingTable({ report, format }: { report: EvaluationReport; format: Format }) {
  const words = useWords().model;
  return (
    <NumberTable
      title={words.byConcept}
      firstColumn={words.concept}
      columns={[words.pairs, words.hits, words.chance, words.fixed]}
    >
      {report.concepts.map((concept) => (
        <tr key={concept.name}>
          <th scope="row" lang="en">
            {concept.title}
          </th>
          <td className="number">{concept.pointing?.pairs ?? 0}</td>
          <td className="number">{format(concept.pointing?.mean.value)}</td>
          <td className="number muted">{format(concept.pointing?.chance)}</td>
          <td className="number muted">{format(concept.pointing?.fixed)}</td>
        </tr>
      ))}
    </NumberTable>
  );
}

interface NumberTableProps {
  title: string;
  firstColumn: string;
  columns: string[];
  children: ReactNode;
}

function NumberTable({ title, firstColumn, columns, children }: NumberTableProps) {
  return (
    <div className="stack">
      <h3>{title}</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">{firstColumn}</th>
            {columns.map((name) => (
              <th key={name} scope="col" className="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
