import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { client, unwrap } from "../api/client";
import { download } from "../lib/download";
import { type Filters, logQueryParams } from "./filters";

export const eventsQuery = (filters: Filters) =>
  infiniteQueryOptions({
    queryKey: ["log", logQueryParams(filters)],
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET("/api/v1/log", {
          params: {
            query: { ...logQueryParams(filters), ...(pageParam === null ? {} : { before: pageParam }) },
          },
        }),
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (last) => last.older,
  });

export const verificationQuery = queryOptions({
  queryKey: ["verdict"],
  queryFn: () => unwrap(client.GET("/api/v1/log/verification")),
  // Verification reads the whole log, so it runs only on request, not on every window focus.
  staleTime: Infinity,
  refetchOnWindowFocus: false,
});

/** Download the whole log. */
export function exportLog(): Promise<void> {
  const day = new Date().toISOString().slice(0, 10);
  return download("/api/v1/log/export", `medgrape-log-${day}.jsonl`, { method: "POST" });
}
