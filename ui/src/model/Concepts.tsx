import { useQuery } from "@tanstack/react-query";

import { conceptsQuery } from "../api/queries";
import type { Concept } from "../api/types";
import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";

/** The findings that a model can point at. */
export function Concepts({ model }: { model: string }) {
  const { model: words, common } = useWords();
  const asked = useQuery(conceptsQuery(model));
  return (
    <section className="card stack broad" aria-labelledby="concepts-title">
      <h2 id="concepts-title">{words.concepts}</h2>
      {asked.isError && <Trouble error={asked.error} again={() => void asked.refetch()} />}
      {asked.isPending && <p className="quiet">{common.loading}</p>}
      {asked.data && (
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
            {asked.data.map((one) => (
              <tr key={one.name}>
                <th scope="row" className="named" lang="en">
                  <a href={`#/atlas/${model}/${one.name}`}>{one.title}</a>
                </th>
                <td lang="en">{one.description}</td>
                <td>{originOf(one, words)}</td>
                <td>{one.judged ? words.yes : words.no}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function originOf(one: Concept, words: { trained: string; taught: string; described: string }): string {
  if (!one.taught_by_films) return words.described;
  return one.trained ? words.trained : words.taught;
}
