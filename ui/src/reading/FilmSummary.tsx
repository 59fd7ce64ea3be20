import { useLocation } from "wouter";

import type { Film } from "../api/types";
import { ModelSelect } from "../components/ModelSelect";
import { useWords, type Words } from "../i18n/words";
import { useStore } from "../lib/store";
import { filmOrder } from "../worklist/filters";
import { ExportMenu } from "./ExportMenu";
import { useReadingContext } from "./ReadingContext";

/** Film id and metadata, previous and next film, model choice, export. */
export function FilmSummary({
  film,
  turn: goToFilm,
  onTeach,
}: {
  film: Film;
  turn: (by: 1 | -1) => void;
  onTeach: (() => void) | null;
}) {
  const words = useWords().reading;
  const order = useStore(filmOrder);
  const index = order.indexOf(film.id);
  return (
    <section className="block" aria-labelledby="film">
      <div className="row spread">
        <h1 id="film">{words.film(film.id.slice(0, 8))}</h1>
        <span className="row">
          <button
            type="button"
            aria-label={words.previous}
            title={words.previous}
            disabled={index <= 0}
            onClick={() => goToFilm(-1)}
          >
            ◂
          </button>
          <button
            type="button"
            aria-label={words.next}
            title={words.next}
            disabled={index < 0 || index >= order.length - 1}
            onClick={() => goToFilm(1)}
          >
            ▸
          </button>
        </span>
      </div>
      <p className="muted">{filmFacts(film, words)}</p>
      <ModelChoice film={film.id} />
      <div className="row">
        {onTeach && (
          <button type="button" onClick={onTeach}>
            {words.teach}
          </button>
        )}
        <ExportMenu />
      </div>
    </section>
  );
}

function ModelChoice({ film }: { film: string }) {
  const words = useWords().reading;
  const { studyData } = useReadingContext();
  const [, go] = useLocation();
  return (
    <label className="row">
      <span className="muted">{words.readWith}</span>
      <ModelSelect
        className="grow"
        models={studyData.models}
        value={studyData.study?.model ?? ""}
        onChoose={(version) => go(`/films/${film}/${version}`)}
      />
    </label>
  );
}

function filmFacts(film: Film, words: Words["reading"]): string {
  const { facts } = film;
  const parts = [
    facts.view,
    words.sexes[film.sex],
    film.age === null ? null : words.years(film.age),
    `${facts.format}, ${facts.bits} bit`,
    `${facts.size.width} × ${facts.size.height}`,
  ];
  return parts.filter(Boolean).join(" · ");
}
