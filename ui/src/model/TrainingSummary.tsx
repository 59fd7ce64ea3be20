import type { ModelCard } from "../api/types";
import { useWords } from "../i18n/words";
import { formatNumber } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { numberAt, stageScores } from "./trainingMetrics";

/** Training results: the best epoch of each stage, and all metrics on demand. */
export function TrainingSummary({ card }: { card: ModelCard }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const stages = stageScores(card.metrics);
  const films = numberAt(card.metrics, "films");
  const refused = numberAt(card.metrics, "films_refused") ?? 0;
  return (
    <section className="card stack" aria-labelledby="training-title">
      <h2 id="training-title">{words.training}</h2>
      <p className="muted small">{words.trainingIntro}</p>
      {stages.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">{words.stage}</th>
              <th scope="col">{words.figure}</th>
              <th scope="col" className="number">
                {words.value}
              </th>
              <th scope="col" className="number">
                {words.epoch}
              </th>
            </tr>
          </thead>
          <tbody>
            {stages.map((row) => (
              <tr key={row.stage}>
                <th scope="row">{words.stages[row.stage] ?? row.stage}</th>
                <td lang="en">{row.figure}</td>
                <td className="number">{formatNumber(row.score, language, 3)}</td>
                <td className="number">{words.epochOf(row.best, row.epochs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {films !== null && (
        <p>
          {words.films}: {films.toLocaleString(language)}
          {refused > 0 && ` (${words.filmsRefused(refused)})`}
        </p>
      )}
      <details>
        <summary>{words.raw}</summary>
        <pre className="raw" tabIndex={0} aria-label={words.raw}>
          {JSON.stringify(card.metrics, null, 2)}
        </pre>
      </details>
    </section>
  );
}
