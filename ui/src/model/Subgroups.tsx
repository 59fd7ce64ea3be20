import { figure } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import type { Groups } from "./queries";

type Group = Groups["whole"];
type Figure = Group["figures"][number];

/** Is the model worth the same to everybody? */
export function Subgroups({ audit }: { audit: Groups }) {
  const words = useWords().model;
  return (
    <section className="card stack" aria-labelledby="audit-title">
      <h2 id="audit-title">{words.audit}</h2>
      <p>{words.auditIntro}</p>
      <p className="quiet small">
        {words.evaluationOn(audit.whole.films, audit.whole.patients, audit.split, audit.data_set)}{" "}
        {words.tooFewTold(audit.fewest_patients)} {words.flagLegend}
      </p>
      {audit.tables.map((table) => (
        <GroupTable
          key={table.title}
          title={words.byTold[table.title] ?? words.by(table.title)}
          groups={[...table.groups, audit.whole]}
          audit={audit}
        />
      ))}
      {audit.flagged.length > 0 && <Sentences title={words.flaggedGaps} told={audit.flagged} />}
      <ul className="bullets quiet small" lang="en">
        {[...audit.headline, ...audit.warnings].map((told) => (
          <li key={told}>{told}</li>
        ))}
      </ul>
    </section>
  );
}

function Sentences({ title, told }: { title: string; told: readonly string[] }) {
  return (
    <div className="hint">
      <h3>{title}</h3>
      <ul className="bullets" lang="en">
        {told.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
    </div>
  );
}

function GroupTable({ title, groups, audit }: { title: string; groups: Group[]; audit: Groups }) {
  const words = useWords().model;
  // A figure that no group has patients enough for would only be a column of "too few".
  const measures = audit.measures.filter((measure) =>
    groups.some((group) => group.figures.some((one) => one.measure === measure.name && !one.too_few)),
  );
  return (
    <div className="stack">
      <h3>{title}</h3>
      <div className="scrolls" tabIndex={0} role="region" aria-label={title}>
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
                    <Value found={group.figures.find((one) => one.measure === measure.name)} />
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

function Value({ found }: { found: Figure | undefined }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  if (!found || found.too_few || found.value === null) return <span className="quiet">{words.tooFew}</span>;
  return (
    <>
      <Flag found={found} />
      {figure(found.value, language, 3)}
      <Trivial found={found} />
    </>
  );
}

function Flag({ found }: { found: Figure }) {
  const words = useWords().model;
  if (!found.flagged) return null;
  const told = found.still_flagged ? words.stillFlagged : words.flagged;
  return (
    <span className="flag" role="img" aria-label={told} title={told}>
      {found.still_flagged ? "▲▲ " : "▲ "}
    </span>
  );
}

function Trivial({ found }: { found: Figure }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const blind = found.trivial[0];
  if (!blind || blind.value === null) return null;
  return (
    <div className="quiet small" title={blind.title}>
      {words.trivially(figure(blind.value, language, 3))}
    </div>
  );
}
