import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import type { Film, FilmPage } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { useDebounced } from "../lib/useDebounced";
import { AddFilmsButton } from "./AddFilmsButton";
import { ExportAllMenu } from "./ExportAllMenu";
import { FilmRow } from "./FilmRow";
import { FilterBar } from "./FilterBar";
import { filmOrder, isFiltered, lastPage, NO_FILTERS, worklistFilters } from "./filters";
import { filmsQuery } from "./queries";
import { RemoveFilmDialog } from "./RemoveFilmDialog";
import { UploadList } from "./UploadList";
import { countUploads, uploadQueue } from "./uploads";
import { useFileDrop } from "./useFileDrop";

/** All films, with upload, filters and removal. */
export function WorklistScreen() {
  const words = useWords().worklist;
  const filters = useStore(worklistFilters);
  const search = useDebounced(filters.search, 250);
  const films = useQuery(filmsQuery({ ...filters, search }));
  const isDragging = useFileDrop(uploadQueue.add);
  useRefetchAfterUpload();
  useFilmOrder(films.data);
  useScrollRestoration(films.data !== undefined);
  return (
    <div className="screen worklist">
      <header className="screen-head">
        <h1>{words.title}</h1>
        <p className="muted" role="status">
          {films.data && words.count(films.data.total)}
          {films.isPlaceholderData && ` · ${words.updating}`}
        </p>
        <ExportAllMenu />
        <AddFilmsButton />
      </header>
      <UploadList />
      <FilterBar />
      {films.isError && <ErrorMessage error={films.error} onRetry={() => void films.refetch()} />}
      {films.isPending && <Loading />}
      {films.data && <FilmTable page={films.data} narrowed={isFiltered({ ...filters, search })} />}
      {isDragging && (
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

function FilmTable({ page, narrowed }: { page: FilmPage; narrowed: boolean }) {
  const words = useWords().worklist;
  const [filmToRemove, setFilmToRemove] = useState<Film | null>(null);
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
              <span className="visually-hidden">{words.columns.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {page.films.map((film) => (
            <FilmRow key={film.id} film={film} onRemove={() => setFilmToRemove(film)} />
          ))}
        </tbody>
      </table>
      <Pages page={page.page} last={lastPage(page.total)} />
      {filmToRemove && <RemoveFilmDialog film={filmToRemove} onClose={() => setFilmToRemove(null)} />}
    </>
  );
}

function Pages({ page, last }: { page: number; last: number }) {
  const words = useWords().worklist;
  if (last <= 1) return null;
  const turn = (to: number) => {
    worklistFilters.set((current) => ({ ...current, page: to }));
    document.getElementById("content")?.scrollTo({ top: 0 });
  };
  return (
    <nav className="row pages" aria-label={words.pages}>
      <button type="button" disabled={page <= 1} onClick={() => turn(page - 1)}>
        ← {words.earlier}
      </button>
      <span className="muted">{words.page(page, last)}</span>
      <button type="button" disabled={page >= last} onClick={() => turn(page + 1)}>
        {words.later} →
      </button>
    </nav>
  );
}

function Loading() {
  return <p className="muted centred">{useWords().common.loading}</p>;
}

function NoFilms() {
  const words = useWords().worklist;
  return (
    <div className="centred empty">
      <h2>{words.none}</h2>
      <p className="muted">{words.noneHint}</p>
    </div>
  );
}

function NoMatch() {
  const words = useWords().worklist;
  return (
    <div className="centred">
      <p>{words.noMatch}</p>
      <button type="button" onClick={() => worklistFilters.set(NO_FILTERS)}>
        {words.reset}
      </button>
    </div>
  );
}

/** Fetch the list again after an upload. */
function useRefetchAfterUpload(): void {
  const queryClient = useQueryClient();
  const { arrived } = countUploads(useStore(uploadQueue.uploads));
  useEffect(() => {
    if (arrived > 0) void queryClient.invalidateQueries({ queryKey: ["films"] });
  }, [queryClient, arrived]);
}

/** Remember the order of the films for the reading screen, and leave a last page that has become empty. */
function useFilmOrder(page: FilmPage | undefined): void {
  useEffect(() => {
    if (!page) return;
    filmOrder.set(page.films.map((film) => film.id));
    const last = lastPage(page.total);
    if (page.page > last) worklistFilters.set((current) => ({ ...current, page: last }));
  }, [page]);
}

let lastScrollTop = 0;

/** Keep the scroll position of the list while a film is open. */
function useScrollRestoration(filled: boolean): void {
  useEffect(() => {
    const content = document.getElementById("content");
    if (!filled || !content) return;
    content.scrollTop = lastScrollTop;
    const savePosition = () => {
      lastScrollTop = content.scrollTop;
    };
    content.addEventListener("scroll", savePosition, { passive: true });
    return () => content.removeEventListener("scroll", savePosition);
  }, [filled]);
}
