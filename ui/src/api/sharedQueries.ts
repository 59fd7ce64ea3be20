/** The query client and the queries that several screens use. */
import { QueryClient, queryOptions } from "@tanstack/react-query";

import { client, fetchFrom, unwrap } from "./client";
import { isTemporary, Problem } from "./problems";
import { connection } from "./serverConnection";
import type { Film } from "./types";
import type { ModelCard, Prototype } from "./types";

const LONGEST_DELAY = 4000;

export function retryDelay(attempt: number, error: unknown): number {
  if (error instanceof Problem && error.retryAfter !== null) return error.retryAfter * 1000;
  return Math.min(300 * 2 ** attempt, LONGEST_DELAY);
}

export function createQueryClient(): QueryClient {
  const retryPolicy = { retry: (_: number, error: unknown) => isTemporary(error), retryDelay };
  const queryClient = new QueryClient({
    defaultOptions: {
      // The server often runs on this computer, so the browser's online state does not matter.
      queries: { ...retryPolicy, networkMode: "always", staleTime: 10_000, refetchOnWindowFocus: true },
      mutations: { ...retryPolicy, networkMode: "always" },
    },
  });
  let lost = false;
  connection.subscribe(() => {
    if (lost && !connection.get().lost) void queryClient.invalidateQueries();
    lost = connection.get().lost;
  });
  return queryClient;
}

const NEVER_CHANGES = { staleTime: Infinity, gcTime: 10 * 60_000 };

export const currentUserQuery = queryOptions({
  queryKey: ["me"],
  queryFn: () => unwrap(client.GET("/api/v1/session/me")),
  staleTime: Infinity,
});

export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: () => unwrap(client.GET("/api/v1/models")),
});

// openapi-fetch widens tuples to arrays, hence the casts to the schema's types.
export const modelQuery = (model: string) =>
  queryOptions({
    queryKey: ["model", model],
    queryFn: () =>
      unwrap(client.GET("/api/v1/models/{model}", { params: { path: { model } } })) as Promise<ModelCard>,
  });

export const conceptsQuery = (model: string) =>
  queryOptions({
    queryKey: ["concepts", model],
    queryFn: () => unwrap(client.GET("/api/v1/models/{model}/concepts", { params: { path: { model } } })),
    ...NEVER_CHANGES,
  });

export const prototypesQuery = (model: string, concept: string) =>
  queryOptions({
    queryKey: ["prototypes", model, concept],
    queryFn: () =>
      unwrap(
        client.GET("/api/v1/models/{model}/concepts/{concept}/prototypes", {
          params: { path: { model, concept } },
        }),
      ) as Promise<Prototype[]>,
    ...NEVER_CHANGES,
  });

export const filmQuery = (film: string) =>
  queryOptions({
    queryKey: ["film", film],
    // openapi-fetch widens tuples to arrays, hence the cast.
    queryFn: () =>
      unwrap(client.GET("/api/v1/films/{film}", { params: { path: { film } } })) as Promise<Film>,
  });

/** A decoded picture. */
export const pictureQuery = (address: string) =>
  queryOptions({
    queryKey: ["picture", address],
    queryFn: async ({ signal }) => createImageBitmap(await (await fetchFrom(address, { signal })).blob()),
    staleTime: Infinity,
    gcTime: 60_000,
    structuralSharing: false,
  });
