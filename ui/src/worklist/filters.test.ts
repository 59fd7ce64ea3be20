import { expect, test } from "vitest";

import type { Film, Me } from "../api/types";
import { ALL, asked, choose, filters, isNarrowed, lastPage } from "./filters";
import { likeliestOf, mayRemove } from "./queries";

test("only what was chosen is asked for", () => {
  expect(asked(ALL)).toEqual({ page: 1, size: 50 });
  expect(asked({ ...ALL, search: " pa ", unread: true })).toEqual({
    page: 1,
    size: 50,
    search: "pa",
    unread: true,
  });
});

test("another choice begins at the first page", () => {
  filters.set({ ...ALL, page: 4 });
  choose({ likeliest: "active_tb" });
  expect(filters.get()).toEqual({ ...ALL, likeliest: "active_tb" });
});

test("blanks narrow nothing down", () => {
  expect(isNarrowed({ ...ALL, search: "  ", page: 3 })).toBe(false);
  expect(isNarrowed({ ...ALL, mine: true })).toBe(true);
});

test("there is always a page", () => {
  expect([0, 1, 50, 51].map(lastPage)).toEqual([1, 1, 1, 2]);
});

const film = (by: string, ...readers: string[]) =>
  ({ arrived_by: by, readings: readers.map((reader) => ({ reader })) }) as unknown as Film;
const person = (name: string, role: string) => ({ name, role }) as Me;

test("a reader removes an own film that nobody else has read, a curator any", () => {
  expect(mayRemove(person("ada", "reader"), film("ada", "ada"))).toBe(true);
  expect(mayRemove(person("ada", "reader"), film("ada", "ada", "bo"))).toBe(false);
  expect(mayRemove(person("ada", "reader"), film("bo"))).toBe(false);
  expect(mayRemove(person("ada", "curator"), film("bo", "cy"))).toBe(true);
});

test("a film that the model has not looked at has no likeliest class", () => {
  expect(likeliestOf({ prediction: null } as Film)).toBeNull();
  expect(likeliestOf({ prediction: { a: 0.2, b: 0.8 } } as unknown as Film)).toEqual(["b", 0.8]);
});
