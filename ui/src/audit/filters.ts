/** Filters of the audit log. */
import { createStore } from "../lib/store";

export interface Filters {
  actor: string;
  kind: string;
  film: string;
  study: string;
  /** Days in the user's time zone. */
  since: string;
  until: string;
}

export const NO_FILTERS: Filters = { actor: "", kind: "", film: "", study: "", since: "", until: "" };
export const logFilters = createStore<Filters>(NO_FILTERS);

export function isFiltered(filters: Filters): boolean {
  return Object.values(filters).some((value: string) => value.trim() !== "");
}

/** Query parameters. The server expects UTC, and `until` is exclusive. */
export function logQueryParams(filters: Filters): Record<string, string> {
  const params = {
    actor: filters.actor.trim(),
    kind: filters.kind,
    film: filters.film.trim(),
    study: filters.study.trim(),
    since: localMidnight(filters.since, 0),
    until: localMidnight(filters.until, 1),
  };
  return Object.fromEntries(Object.entries(params).filter(([, value]) => value !== ""));
}

function localMidnight(day: string, later: number): string {
  const [year, month, date] = day.split("-").map(Number);
  if (!year || !month || !date || year > 9999) return "";
  return new Date(year, month - 1, date + later).toISOString();
}
