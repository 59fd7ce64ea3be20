/** Filters and page of the film list. Kept for the browser session. */
import { createKeptStore, createStore } from "../lib/store";

export interface Filters {
  search: string;
  likeliest: string;
  view: string;
  unread: boolean;
  mine: boolean;
  page: number;
}

export const NO_FILTERS: Filters = {
  search: "",
  likeliest: "",
  view: "",
  unread: false,
  mine: false,
  page: 1,
};
export const VIEWS = ["PA", "AP", "LL", "RL"] as const;
export const PAGE_SIZE = 50;

export const worklistFilters = createKeptStore<Filters>("medgrape.worklist", NO_FILTERS, "sessionStorage");

/** Change filters and go to the first page. */
export function setFilter(change: Partial<Omit<Filters, "page">>): void {
  worklistFilters.set((current) => ({ ...current, ...change, page: 1 }));
}

export function isFiltered(filters: Filters): boolean {
  return (
    filters.search.trim() !== "" ||
    filters.likeliest !== "" ||
    filters.view !== "" ||
    filters.unread ||
    filters.mine
  );
}

/** Query parameters: only filters that are set. */
export function filmQueryParams(filters: Filters) {
  return {
    page: filters.page,
    size: PAGE_SIZE,
    ...(filters.search.trim() && { search: filters.search.trim() }),
    ...(filters.likeliest && { likeliest: filters.likeliest }),
    ...(filters.view && { view: filters.view }),
    ...(filters.unread && { unread: true }),
    ...(filters.mine && { mine: true }),
  };
}

/** Number of the last page, at least 1. */
export function lastPage(total: number): number {
  return Math.max(1, Math.ceil(total / PAGE_SIZE));
}

/** Ids of the films as last listed. "Next film" on the reading screen follows this order. */
export const filmOrder = createStore<string[]>([]);
