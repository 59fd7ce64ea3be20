import { useLocation } from "wouter";

import type { Film } from "../api/types";
import { ModelSelect } from "../parts/ModelSelect";
import { useStore } from "../parts/store";
import { useWords, type Words } from "../words/words";
import { listed } from "../worklist/order";
import { Export } from "./Export";
import { useSitting } from "./sitting";

/** Which film this is, with which model it is read, and where to go from here. */
export function FilmFacts({
  film,
  turn,
  onTeach,
}: {
  film: Film;
  turn: (by: 1 | -1) => void;
  onTeach: (() => void) | null;
}) {
  const words = useWords().reading;
  const order = useStore(listed);
  const place = order.indexOf(film.id);
  return (
    <section className="block" aria-labelledby="film">
      <div className="row spread">
        <h1 id="film">{words.film(film.id.slice(0, 8))}</h1>
        <span className="row">
          <button
            type="button"
            aria-label={words.previous}
            title={words.previous}
            disabled={place <= 0}
            onClick={() => turn(-1)}
          >
            ◂
          </button>
          <button
            type="button"
            aria-label={words.next}
            title={words.next}
            disabled={place < 0 || place >= order.length - 1}
            onClick={() => turn(1)}
          >
            ▸
          </button>
        </span>
      </div>
      <p className="quiet">{factsOf(film, words)}</p>
      <ModelChoice film={film.id} />
      <div className="row">
        {onTeach && (
          <button type="button" onClick={onTeach}>
            {words.teach}
          </button>
        )}
        <Export />
      </div>
    </section>
  );
}

function ModelChoice({ film }: { film: string }) {
  const words = useWords().reading;
  const { reading } = useSitting();
  const [, go] = useLocation();
  return (
    <label className="row">
      <span className="quiet">{words.readWith}</span>
      <ModelSelect
        className="grow"
        models={reading.models}
        value={reading.study?.model ?? ""}
        onChoose={(version) => go(`/films/${film}/${version}`)}
      />
    </label>
  );
}

function factsOf(film: Film, words: Words["reading"]): string {
  const { facts } = film;
  const told = [
    facts.view,
    words.sexes[film.sex],
    film.age === null ? null : words.years(film.age),
    `${facts.format}, ${facts.bits} bit`,
    `${facts.size.width} × ${facts.size.height}`,
  ];
  return told.filter(Boolean).join(" · ");
}
