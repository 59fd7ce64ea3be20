import { figure, readable } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords, type Words } from "../words/words";
import type { Report } from "./queries";

interface Row {
  question: string;
  value: number | null;
  low?: number | null;
  high?: number | null;
  /** What somebody gets who looks at no film. */
  trivial: string;
}

/** Every figure with the trivial answer beside it. */
export function ReportTables({ report }: { report: Report }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const told = (value: number | null | undefined) =>
    value === null || value === undefined ? words.noneTold : figure(value, language, 3);
  return (
    <>
      <p className="quiet small">
        {words.evaluationOn(report.films.read, report.films.patients, report.split, report.data_set)}
        {report.known_films > 0 && ` ${words.known(report.known_films)}`}
        {!report.its_own && ` ${words.notItsOwn}`}
      </p>
      <div className="scrolls">
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
            {rowsOf(report, words, told).map((row) => (
              <tr key={row.question}>
                <th scope="row">{row.question}</th>
                <td className="number strong">{told(row.value)}</td>
                <td>
                  {row.low === null || row.low === undefined
                    ? ""
                    : words.intervalTold(told(row.low), told(row.high))}
                </td>
                <td className="quiet">{row.trivial}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="cards inner">
        <ByClass report={report} told={told} />
        <ByConcept report={report} told={told} />
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

type Told = (value: number | null | undefined) => string;

function rowsOf(report: Report, words: Words["model"], told: Told): Row[] {
  const { classification, pointing, safety } = report;
  const { majority, macro_f1: f1 } = classification;
  const always = (value: number | undefined) =>
    majority && value !== undefined
      ? words.trivialAnswer(told(value), readable(majority.answer))
      : words.noneTold;
  const rows: Row[] = [
    { question: words.questions.macroF1, ...f1, trivial: always(majority?.macro_f1) },
    {
      question: words.questions.accuracy,
      value: classification.accuracy,
      trivial: always(majority?.accuracy),
    },
    { question: words.questions.auc, value: classification.macro_auc, trivial: words.byChance(told(0.5)) },
  ];
  if (pointing) {
    const fixed = pointing.fixed === null ? null : told(pointing.fixed);
    const trivial = words.pointingTrivial(told(pointing.chance), fixed);
    rows.push({ question: words.questions.pointing, ...pointing.mean, trivial });
  }
  return safety ? [...rows, ...safetyRows(safety, words, told)] : rows;
}

function safetyRows(safety: NonNullable<Report["safety"]>, words: Words["model"], told: Told): Row[] {
  const kinds = [
    ["caught", words.questions.caught],
    ["false_alarms", words.questions.falseAlarms],
    ["balanced", words.questions.balanced],
  ] as const;
  return kinds.flatMap(([kind, question]) => {
    const own = safety.own[kind];
    if (!own) return [];
    const blind = safety.majority?.[kind];
    return [{ question, ...own, trivial: blind ? words.commonest(told(blind.value)) : words.noneTold }];
  });
}

function ByClass({ report, told }: { report: Report; told: Told }) {
  const words = useWords().model;
  return (
    <div className="stack">
      <h3>{words.byClass}</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">{words.klass}</th>
            {[words.support, words.f1, words.precision, words.recall, words.aucShort].map((name) => (
              <th key={name} scope="col" className="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {report.classification.classes.map((one) => (
            <tr key={one.name}>
              <th scope="row">{readable(one.name)}</th>
              <td className="number">{one.support}</td>
              <td className="number">{told(one.f1)}</td>
              <td className="number">{told(one.precision)}</td>
              <td className="number">{told(one.recall)}</td>
              <td className="number">{told(one.auc)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ByConcept({ report, told }: { report: Report; told: Told }) {
  const words = useWords().model;
  return (
    <div className="stack">
      <h3>{words.byConcept}</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">{words.concept}</th>
            {[words.pairs, words.hits, words.chance, words.fixed].map((name) => (
              <th key={name} scope="col" className="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {report.concepts.map((one) => (
            <tr key={one.name}>
              <th scope="row" lang="en">
                {one.title}
              </th>
              <td className="number">{one.pointing?.pairs ?? 0}</td>
              <td className="number">{told(one.pointing?.mean.value)}</td>
              <td className="number quiet">{told(one.pointing?.chance)}</td>
              <td className="number quiet">{told(one.pointing?.fixed)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
