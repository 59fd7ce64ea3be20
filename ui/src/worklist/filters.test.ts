import { expect, test } from "vitest";

import type { CurrentUser, Film } from "../api/types";
import { filmQueryParams, isFiltered, lastPage, NO_FILTERS, setFilter, worklistFilters } from "./filters";
import { canRemove, likeliestClass } from "./queries";

test("only filters that are set are sent", () => {
  expect(filmQueryParams(NO_FILTERS)).toEqual({ page: 1, size: 50 });
  expect(filmQueryParams({ ...NO_FILTERS, search: " pa ", unread: true })).toEqual({
    page: 1,
    size: 50,
    search: "pa",
    unread: true,
  });
});

test("a changed filter goes back to the first page", () => {
  worklistFilters.set({ ...NO_FILTERS, page: 4 });
  setFilter({ likeliest: "active_tb" });
  expect(worklistFilters.get()).toEqual({ ...NO_FILTERS, likeliest: "active_tb" });
});

test("blanks are no filter", () => {
  expect(isFiltered({ ...NO_FILTERS, search: "  ", page: 3 })).toBe(false);
  expect(isFiltered({ ...NO_FILTERS, mine: true })).toBe(true);
});

test("there is always at least one page", () => {
  expect([0, 1, 50, 51].map(lastPage)).toEqual([1, 1, 1, 2]);
});

const film = (by: string, ...readers: string[]) =>
  ({ arrived_by: by, readings: readers.map((reader) => ({ reader })) }) as unknown as Film;
const person = (name: string, role: string) => ({ name, role }) as CurrentUser;

test("readers remove their own films that nobody else has read, curators remove any", () => {
  expect(canRemove(person("ada", "reader"), film("ada", "ada"))).toBe(true);
  expect(canRemove(person("ada", "reader"), film("ada", "ada", "bo"))).toBe(false);
  expect(canRemove(person("ada", "reader"), film("bo"))).toBe(false);
  expect(canRemove(person("ada", "curator"), film("bo", "cy"))).toBe(true);
});

test("a film without a prediction has no likeliest class", () => {
  expect(likeliestClass({ prediction: null } as Film)).toBeNull();
  expect(likeliestClass({ prediction: { a: 0.2, b: 0.8 } } as unknown as Film)).toEqual(["b", 0.8]);
});
