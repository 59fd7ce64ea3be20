/** Which films somebody wants to see. Kept for as long as the window is open, so that coming back finds the same list. */
import { createKeptStore } from "../parts/store";

export interface Filters {
  search: string;
  likeliest: string;
  view: string;
  unread: boolean;
  mine: boolean;
  page: number;
}

export const ALL: Filters = { search: "", likeliest: "", view: "", unread: false, mine: false, page: 1 };
export const VIEWS = ["PA", "AP", "LL", "RL"] as const;
export const PAGE_SIZE = 50;

export const filters = createKeptStore<Filters>("medgrape.worklist", ALL, "sessionStorage");

/** Whatever else is chosen, another choice begins at the first page. */
export function choose(change: Partial<Omit<Filters, "page">>): void {
  filters.set((now) => ({ ...now, ...change, page: 1 }));
}

export function isNarrowed(now: Filters): boolean {
  return now.search.trim() !== "" || now.likeliest !== "" || now.view !== "" || now.unread || now.mine;
}

/** What the server is asked: only what was chosen. */
export function asked(now: Filters) {
  return {
    page: now.page,
    size: PAGE_SIZE,
    ...(now.search.trim() && { search: now.search.trim() }),
    ...(now.likeliest && { likeliest: now.likeliest }),
    ...(now.view && { view: now.view }),
    ...(now.unread && { unread: true }),
    ...(now.mine && { mine: true }),
  };
}

/** The last page there is: films may have been removed since somebody turned to a later one. */
export function lastPage(total: number): number {
  return Math.max(1, Math.ceil(total / PAGE_SIZE));
}
