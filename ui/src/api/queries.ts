/** What the page knows of the server, kept and asked for again when needed. */
import { QueryClient, queryOptions } from "@tanstack/react-query";

import { client, reachAt, told } from "./client";
import { connection } from "./connection";
import { passes, Problem } from "./problems";
import type { Film } from "./types";
import type { ModelCard, Prototype } from "./types";

const LONGEST_PAUSE = 4000;

export function pause(attempt: number, error: unknown): number {
  if (error instanceof Problem && error.retryAfter !== null) return error.retryAfter * 1000;
  return Math.min(300 * 2 ** attempt, LONGEST_PAUSE);
}

export function createQueries(): QueryClient {
  const trying = { retry: (_: number, error: unknown) => passes(error), retryDelay: pause };
  const queries = new QueryClient({
    defaultOptions: {
      // The server is often this very machine: whether the browser is online says nothing about it.
      queries: { ...trying, networkMode: "always", staleTime: 10_000, refetchOnWindowFocus: true },
      mutations: { ...trying, networkMode: "always" },
    },
  });
  let lost = false;
  connection.subscribe(() => {
    if (lost && !connection.get().lost) void queries.invalidateQueries();
    lost = connection.get().lost;
  });
  return queries;
}

const FOR_GOOD = { staleTime: Infinity, gcTime: 10 * 60_000 };

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: () => told(client.GET("/api/v1/session/me")),
  staleTime: Infinity,
});

export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: () => told(client.GET("/api/v1/models")),
});

// openapi-fetch forgets that a pair has two members, hence casts to what the schema says.
export const modelQuery = (model: string) =>
  queryOptions({
    queryKey: ["model", model],
    queryFn: () =>
      told(client.GET("/api/v1/models/{model}", { params: { path: { model } } })) as Promise<ModelCard>,
  });

export const conceptsQuery = (model: string) =>
  queryOptions({
    queryKey: ["concepts", model],
    queryFn: () => told(client.GET("/api/v1/models/{model}/concepts", { params: { path: { model } } })),
    ...FOR_GOOD,
  });

export const prototypesQuery = (model: string, concept: string) =>
  queryOptions({
    queryKey: ["prototypes", model, concept],
    queryFn: () =>
      told(
        client.GET("/api/v1/models/{model}/concepts/{concept}/prototypes", {
          params: { path: { model, concept } },
        }),
      ) as Promise<Prototype[]>,
    ...FOR_GOOD,
  });

export const filmQuery = (film: string) =>
  queryOptions({
    queryKey: ["film", film],
    // The client's own types forget how long a list is.
    queryFn: () => told(client.GET("/api/v1/films/{film}", { params: { path: { film } } })) as Promise<Film>,
  });

/** A picture, decoded and ready to be drawn. */
export const pictureQuery = (address: string) =>
  queryOptions({
    queryKey: ["picture", address],
    queryFn: async ({ signal }) => createImageBitmap(await (await reachAt(address, { signal })).blob()),
    staleTime: Infinity,
    gcTime: 60_000,
    structuralSharing: false,
  });
