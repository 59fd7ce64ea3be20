/** Which events somebody wants to see. */
import { createStore } from "../parts/store";

export interface Filters {
  actor: string;
  kind: string;
  film: string;
  study: string;
  /** Days, as people in this time zone count them. */
  since: string;
  until: string;
}

export const ALL: Filters = { actor: "", kind: "", film: "", study: "", since: "", until: "" };
export const filters = createStore<Filters>(ALL);

export function isNarrowed(now: Filters): boolean {
  return Object.values(now).some((value: string) => value.trim() !== "");
}

/** What the server is asked: it counts in UTC, and leaves `until` itself out. */
export function asked(now: Filters): Record<string, string> {
  const told = {
    actor: now.actor.trim(),
    kind: now.kind,
    film: now.film.trim(),
    study: now.study.trim(),
    since: midnight(now.since, 0),
    until: midnight(now.until, 1),
  };
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== ""));
}

function midnight(day: string, later: number): string {
  const [year, month, date] = day.split("-").map(Number);
  if (!year || !month || !date || year > 9999) return "";
  return new Date(year, month - 1, date + later).toISOString();
}
