import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";

import { client, reachAt, told } from "../api/client";
import { asked, type Filters } from "./filters";

export const eventsQuery = (now: Filters) =>
  infiniteQueryOptions({
    queryKey: ["log", asked(now)],
    queryFn: ({ pageParam }) =>
      told(
        client.GET("/api/v1/log", {
          params: { query: { ...asked(now), ...(pageParam === null ? {} : { before: pageParam }) } },
        }),
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (last) => last.older,
  });

export const verdictQuery = queryOptions({
  queryKey: ["verdict"],
  queryFn: () => told(client.GET("/api/v1/log/verification")),
  // Every event is looked at, so it is done when somebody asks and not whenever they come back to the window.
  staleTime: Infinity,
  refetchOnWindowFocus: false,
});

/** Saves the whole log as a file. */
export async function exportLog(): Promise<void> {
  const answer = await reachAt("/api/v1/log/export", { method: "POST" });
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = `medgrape-log-${new Date().toISOString().slice(0, 10)}.jsonl`;
  link.click();
  URL.revokeObjectURL(address);
}
