import { useQuery } from "@tanstack/react-query";

import { conceptsQuery } from "../api/sharedQueries";
import type { Concept } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";

/** All findings of a model. */
export function ConceptTable({ model }: { model: string }) {
  const { model: words, common } = useWords();
  const concepts = useQuery(conceptsQuery(model));
  return (
    <section className="card stack wide-card" aria-labelledby="concepts-title">
      <h2 id="concepts-title">{words.concepts}</h2>
      {concepts.isError && <ErrorMessage error={concepts.error} onRetry={() => void concepts.refetch()} />}
      {concepts.isPending && <p className="muted">{common.loading}</p>}
      {concepts.data && (
        <table>
          <thead>
            <tr>
              <th scope="col">{words.concept}</th>
              <th scope="col">{words.description}</th>
              <th scope="col">{words.origin}</th>
              <th scope="col">{words.judged}</th>
            </tr>
          </thead>
          <tbody>
            {concepts.data.map((concept) => (
              <tr key={concept.name}>
                <th scope="row" className="named" lang="en">
                  <a href={`#/atlas/${model}/${concept.name}`}>{concept.title}</a>
                </th>
                <td lang="en">{concept.description}</td>
                <td>{conceptOrigin(concept, words)}</td>
                <td>{concept.judged ? words.yes : words.no}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function conceptOrigin(
  concept: Concept,
  words: { trained: string; taught: string; described: string },
): string {
  if (!concept.taught_by_films) return words.described;
  return concept.trained ? words.trained : words.taught;
}
