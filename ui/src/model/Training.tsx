import type { ModelCard } from "../api/types";
import { figure } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { numberAt, stagesOf } from "./metrics";

/** What training wrote down: the useful part in words, all of it on demand. */
export function Training({ card }: { card: ModelCard }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const stages = stagesOf(card.metrics);
  const films = numberAt(card.metrics, "films");
  const refused = numberAt(card.metrics, "films_refused") ?? 0;
  return (
    <section className="card stack" aria-labelledby="training-title">
      <h2 id="training-title">{words.training}</h2>
      <p className="quiet small">{words.trainingIntro}</p>
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
            {stages.map((one) => (
              <tr key={one.stage}>
                <th scope="row">{words.stages[one.stage] ?? one.stage}</th>
                <td lang="en">{one.figure}</td>
                <td className="number">{figure(one.score, language, 3)}</td>
                <td className="number">{words.epochOf(one.best, one.epochs)}</td>
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
