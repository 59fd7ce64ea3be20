import { keepPreviousData, queryOptions } from "@tanstack/react-query";

import { client, told } from "../api/client";
import type { Film, FilmPage, Me } from "../api/types";
import { may } from "../api/session";
import { asked, type Filters } from "./filters";

const SOON = 2500;
const LATER = 30_000;

export const filmsQuery = (now: Filters) =>
  queryOptions({
    queryKey: ["films", asked(now)],
    // openapi-fetch forgets that a pair has two members, hence the cast.
    queryFn: () => told(client.GET("/api/v1/films", { params: { query: asked(now) } })) as Promise<FilmPage>,
    placeholderData: keepPreviousData,
    // A film that the model has not looked at yet will be looked at within seconds.
    refetchInterval: ({ state }) =>
      state.data?.films.some((film) => film.prediction === null) ? SOON : LATER,
  });

/** The server's own rule: one's own film that nobody else has read; a curator any. */
export function mayRemove(me: Me | null, film: Film): boolean {
  if (me === null) return false;
  return (
    may(me, "curator") ||
    (film.arrived_by === me.name && film.readings.every((one) => one.reader === me.name))
  );
}

export function likeliestOf(film: Film): [string, number] | null {
  const ranked = Object.entries(film.prediction ?? {}).sort(([, one], [, other]) => other - one);
  return ranked[0] ?? null;
}
