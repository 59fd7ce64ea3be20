import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import type { Film, FilmPage } from "../api/types";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";
import { AddFilms } from "./AddFilms";
import { useDropped } from "./dropped";
import { FilmRow } from "./FilmRow";
import { FilterBar } from "./FilterBar";
import { ALL, filters, isNarrowed, lastPage } from "./filters";
import { listed } from "./order";
import { Pages } from "./Pages";
import { filmsQuery } from "./queries";
import { RemoveFilm } from "./RemoveFilm";
import { TakeBoxes } from "./TakeBoxes";
import { useKeptScroll, useSettled } from "./settling";
import { queue, tally } from "./uploads";
import { Uploads } from "./Uploads";

/** All films, and the way in for more. */
export function Worklist() {
  const words = useWords().worklist;
  const now = useStore(filters);
  const search = useSettled(now.search, 250);
  const asked = useQuery(filmsQuery({ ...now, search }));
  const over = useDropped(queue.add);
  useArrivals();
  useOrder(asked.data);
  useKeptScroll(asked.data !== undefined);
  return (
    <div className="screen worklist">
      <header className="screen-head">
        <h1>{words.title}</h1>
        <p className="quiet" role="status">
          {asked.data && words.count(asked.data.total)}
          {asked.isPlaceholderData && ` · ${words.updating}`}
        </p>
        <TakeBoxes />
        <AddFilms />
      </header>
      <Uploads />
      <FilterBar />
      {asked.isError && <Trouble error={asked.error} again={() => void asked.refetch()} />}
      {asked.isPending && <Waiting />}
      {asked.data && <Found page={asked.data} narrowed={isNarrowed({ ...now, search })} />}
      {over && (
        <div className="drop-here" aria-hidden="true">
          <div>
            <strong>{words.drop}</strong>
            <p>{words.dropHint}</p>
          </div>
        </div>
      )}
    </div>
  );
}

function Found({ page, narrowed }: { page: FilmPage; narrowed: boolean }) {
  const words = useWords().worklist;
  const [leaving, setLeaving] = useState<Film | null>(null);
  if (page.total === 0) return narrowed ? <NoMatch /> : <NoFilms />;
  return (
    <>
      <table className="films">
        <thead>
          <tr>
            <th scope="col">{words.columns.film}</th>
            <th scope="col">{words.columns.likeliest}</th>
            <th scope="col">{words.columns.facts}</th>
            <th scope="col">{words.columns.arrived}</th>
            <th scope="col">{words.columns.read}</th>
            <th scope="col">
              <span className="hidden">{words.columns.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.films.map((film) => (
            <FilmRow key={film.id} film={film} onRemove={() => setLeaving(film)} />
          ))}
        </tbody>
      </table>
      <Pages page={page.page} last={lastPage(page.total)} />
      {leaving && <RemoveFilm film={leaving} onClose={() => setLeaving(null)} />}
    </>
  );
}

function Waiting() {
  return <p className="quiet lonely">{useWords().common.loading}</p>;
}

function NoFilms() {
  const words = useWords().worklist;
  return (
    <div className="lonely empty">
      <h2>{words.none}</h2>
      <p className="quiet">{words.noneHint}</p>
    </div>
  );
}

function NoMatch() {
  const words = useWords().worklist;
  return (
    <div className="lonely">
      <p>{words.noMatch}</p>
      <button type="button" onClick={() => filters.set(ALL)}>
        {words.reset}
      </button>
    </div>
  );
}

/** What was uploaded is in the list at once. */
function useArrivals(): void {
  const queries = useQueryClient();
  const { arrived } = tally(useStore(queue.uploads));
  useEffect(() => {
    if (arrived > 0) void queries.invalidateQueries({ queryKey: ["films"] });
  }, [queries, arrived]);
}

/** Films may be gone from the last page, and the reading screen turns over in the order of this list. */
function useOrder(page: FilmPage | undefined): void {
  useEffect(() => {
    if (!page) return;
    listed.set(page.films.map((film) => film.id));
    const last = lastPage(page.total);
    if (page.page > last) filters.set((now) => ({ ...now, page: last }));
  }, [page]);
}
