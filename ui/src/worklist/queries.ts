import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { client, unwrap } from "../api/client";
import { hasRole } from "../api/session";
import type { CurrentUser, Film, FilmPage } from "../api/types";
import { filmQueryParams, type Filters } from "./filters";

const PENDING_INTERVAL = 2500;
const REFETCH_INTERVAL = 30_000;

export const filmsQuery = (filters: Filters) =>
  queryOptions({
    queryKey: ["films", filmQueryParams(filters)],
    // openapi-fetch widens tuples to arrays, hence the cast.
    queryFn: () =>
      unwrap(
        client.GET("/api/v1/films", { params: { query: filmQueryParams(filters) } }),
      ) as Promise<FilmPage>,
    placeholderData: keepPreviousData,
    // The model reads new films within seconds, so ask again soon.
    refetchInterval: ({ state }) =>
      state.data?.films.some((film) => film.prediction === null) ? PENDING_INTERVAL : REFETCH_INTERVAL,
  });

/** The server's rule: readers remove their own films that nobody else has read; curators remove any film. */
export function canRemove(me: CurrentUser | null, film: Film): boolean {
  if (me === null) return false;
  return (
    hasRole(me, "curator") ||
    (film.arrived_by === me.name && film.readings.every((reading) => reading.reader === me.name))
  );
}

export function likeliestClass(film: Film): [string, number] | null {
  const ranked = Object.entries(film.prediction ?? {}).sort(([, a], [, b]) => b - a);
  return ranked[0] ?? null;
}
