import type { SubgroupReport } from "../api/types";
import { useWords } from "../i18n/words";
import { formatNumber } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";

type Group = SubgroupReport["whole"];
type Figure = Group["figures"][number];

/** Scores by patient group, with flagged gaps. */
export function SubgroupAudit({ audit }: { audit: SubgroupReport }) {
  const words = useWords().model;
  return (
    <section className="card stack" aria-labelledby="audit-title">
      <h2 id="audit-title">{words.audit}</h2>
      <p>{words.auditIntro}</p>
      <p className="muted small">
        {words.evaluationOn(audit.whole.films, audit.whole.patients, audit.split, audit.data_set)}{" "}
        {words.tooFewNote(audit.fewest_patients)} {words.flagLegend}
      </p>
      {audit.tables.map((table) => (
        <GroupTable
          key={table.title}
          title={words.byGroup[table.title] ?? words.by(table.title)}
          groups={[...table.groups, audit.whole]}
          audit={audit}
        />
      ))}
      {audit.flagged.length > 0 && <SentenceList title={words.flaggedGaps} sentences={audit.flagged} />}
      <ul className="bullets muted small" lang="en">
        {[...audit.headline, ...audit.warnings].map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </section>
  );
}

function SentenceList({ title, sentences }: { title: string; sentences: readonly string[] }) {
  return (
    <div className="hint">
      <h3>{title}</h3>
      <ul className="bullets" lang="en">
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
    </div>
  );
}

function GroupTable({ title, groups, audit }: { title: string; groups: Group[]; audit: SubgroupReport }) {
  const words = useWords().model;
  // Hide measures for which every group has too few patients.
  const measures = audit.measures.filter((measure) =>
    groups.some((group) =>
      group.figures.some((figure) => figure.measure === measure.name && !figure.too_few),
    ),
  );
  return (
    <div className="stack">
      <h3>{title}</h3>
      <div className="scroll-x" tabIndex={0} role="region" aria-label={title}>
        <table className="groups">
          <thead>
            <tr>
              <th scope="col">{words.group}</th>
              <th scope="col" className="number">
                {words.support}
              </th>
              <th scope="col" className="number">
                {words.patients}
              </th>
              {measures.map((measure) => (
                <th key={measure.name} scope="col" className="number">
                  {words.measures[measure.title] ?? measure.title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {groups.map((group) => (
              <tr key={group.name}>
                <th scope="row">
                  {group === audit.whole ? words.allFilms : (words.groups[group.name] ?? group.name)}
                </th>
                <td className="number">{group.films}</td>
                <td className="number">{group.patients}</td>
                {measures.map((measure) => (
                  <td key={measure.name} className="number">
                    <FigureCell figure={group.figures.find((figure) => figure.measure === measure.name)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function FigureCell({ figure }: { figure: Figure | undefined }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  if (!figure || figure.too_few || figure.value === null)
    return <span className="muted">{words.tooFew}</span>;
  return (
    <>
      <Flag figure={figure} />
      {formatNumber(figure.value, language, 3)}
      <Baseline figure={figure} />
    </>
  );
}

function Flag({ figure }: { figure: Figure }) {
  const words = useWords().model;
  if (!figure.flagged) return null;
  const label = figure.still_flagged ? words.stillFlagged : words.flagged;
  return (
    <span className="flag" role="img" aria-label={label} title={label}>
      {figure.still_flagged ? "▲▲ " : "▲ "}
    </span>
  );
}

function Baseline({ figure }: { figure: Figure }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const baseline = figure.trivial[0];
  if (!baseline || baseline.value === null) return null;
  return (
    <div className="muted small" title={baseline.title}>
      {words.baseline(formatNumber(baseline.value, language, 3))}
    </div>
  );
}
