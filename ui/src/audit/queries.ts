import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { client, fetchFrom, unwrap } from "../api/client";
import { logQueryParams, type Filters } from "./filters";

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
export async function exportLog(): Promise<void> {
  const answer = await fetchFrom("/api/v1/log/export", { method: "POST" });
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = `medgrape-log-${new Date().toISOString().slice(0, 10)}.jsonl`;
  link.click();
  URL.revokeObjectURL(address);
}
