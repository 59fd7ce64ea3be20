import { expect, test } from "vitest";

import type { Measurement, Prototype } from "../api/types";
import { filterAndSort, patchBox, PICTURE_SIDE, usageOf } from "./prototypeOrder";

const prototype = (number: number, more: Partial<Prototype> = {}) =>
  ({ number, kept: true, similarity: 0.5, gain: 0.1, patch: [1, 2], grid: [2, 4], ...more }) as Prototype;

const worth = {
  concepts: [
    {
      name: "cavity",
      shown: 9,
      prototypes: [
        { number: 0, strongest: 1, in_box: null },
        { number: 1, strongest: 8, in_box: 0.5 },
      ],
    },
    { name: "unknown to the data", shown: 0, prototypes: [] },
  ],
} as unknown as Measurement;

test("the prototype that is strongest on most films comes first", () => {
  const prototypes = filterAndSort([prototype(0), prototype(1)], "usage", "all", usageOf(worth, "cavity"));
  expect(prototypes.map((prototype) => prototype.number)).toEqual([1, 0]);
});

test("without a measurement, sorting by usage keeps the order of numbers", () => {
  expect(
    filterAndSort([prototype(1), prototype(0)], "usage", "all", null).map((prototype) => prototype.number),
  ).toEqual([0, 1]);
});

test("a prototype without a film sorts as least similar", () => {
  const prototypes = filterAndSort(
    [prototype(0, { similarity: null }), prototype(1)],
    "similarity",
    "all",
    null,
  );
  expect(prototypes.map((prototype) => prototype.number)).toEqual([1, 0]);
});

test("discarded ones can be shown alone", () => {
  const all = [prototype(0), prototype(1, { kept: false })];
  expect(filterAndSort(all, "number", "discarded", null).map((prototype) => prototype.number)).toEqual([1]);
  expect(filterAndSort(all, "number", "kept", null).map((prototype) => prototype.number)).toEqual([0]);
});

test("a finding that no training film shows has no usage", () => {
  expect(usageOf(worth, "unknown to the data")).toBeNull();
  expect(usageOf(null, "cavity")).toBeNull();
});

test("a patch given as row and column is drawn at x and y", () => {
  expect(patchBox(prototype(0))).toEqual({
    x1: PICTURE_SIDE / 2,
    y1: PICTURE_SIDE / 2,
    x2: (PICTURE_SIDE * 3) / 4,
    y2: PICTURE_SIDE,
  });
});
