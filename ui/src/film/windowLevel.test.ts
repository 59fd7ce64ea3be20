import { describe, expect, test } from "vitest";

import { forManyCases, type RandomSource } from "../test/randomCases";
import {
  dragWindowLevel,
  FULL_RANGE,
  isSameWindow,
  lookupTable,
  pictureAddress,
  type WindowLevel,
} from "./windowLevel";

const ALL = Array.from({ length: 256 }, (_, grey) => grey);
const someGreys = (random: RandomSource): WindowLevel => ({
  centre: random.between(0, 1),
  width: random.between(0.02, 2),
  inverted: false,
});

describe("the lookup table", () => {
  test("changes nothing at the full range", () => {
    expect([...lookupTable(FULL_RANGE)]).toEqual(ALL);
  });

  test("inverted, black is white and white is black", () => {
    expect([...lookupTable({ ...FULL_RANGE, inverted: true })]).toEqual([...ALL].reverse());
  });

  test("with any window, a brighter value never becomes the darker one", () => {
    forManyCases((random) => {
      const greys = [...lookupTable(someGreys(random))];
      expect(greys).toEqual([...greys].sort((a, b) => a - b));
    });
  });

  test("inverting gives the negative", () => {
    forManyCases((random) => {
      const greys = someGreys(random);
      const negative = [...lookupTable({ ...greys, inverted: true })];
      const off = [...lookupTable(greys)].map((shown, grey) =>
        Math.abs(shown + (negative[grey] ?? NaN) - 255),
      );
      expect(Math.max(...off)).toBeLessThanOrEqual(1);
    });
  });

  test("a narrow window is black below, white above, and all greys in between", () => {
    const greys = lookupTable({ centre: 0.5, width: 0.2, inverted: false });
    expect(greys[Math.floor(0.39 * 255)]).toBe(0);
    expect(greys[Math.ceil(0.61 * 255)]).toBe(255);
    expect(greys[Math.round(0.45 * 255)]).toBeGreaterThan(40);
    expect(greys[Math.round(0.45 * 255)]).toBeLessThan(90);
  });
});

describe("dragging window and level", () => {
  test("right widens the window, left narrows it", () => {
    expect(dragWindowLevel(FULL_RANGE, 0.1, 0).width).toBeGreaterThan(1);
    expect(dragWindowLevel(FULL_RANGE, -0.1, 0).width).toBeLessThan(1);
  });

  test("down makes every grey at least as bright as before", () => {
    const before = lookupTable(FULL_RANGE);
    const after = lookupTable(dragWindowLevel(FULL_RANGE, 0, 0.2));
    expect([...after].every((shown, grey) => shown >= (before[grey] ?? 0))).toBe(true);
    expect(after[128]).toBeGreaterThan(128);
  });

  test("the window stays between a fiftieth of and twice the grey range", () => {
    expect(dragWindowLevel(FULL_RANGE, -50, 0).width).toBe(0.02);
    expect(dragWindowLevel(FULL_RANGE, 50, 0).width).toBe(2);
    expect(dragWindowLevel(FULL_RANGE, 0, 50).centre).toBe(0);
    expect(dragWindowLevel(FULL_RANGE, 0, -50).centre).toBe(1);
  });

  test("an inverted film stays inverted", () => {
    expect(dragWindowLevel({ ...FULL_RANGE, inverted: true }, 0.3, 0.3).inverted).toBe(true);
  });

  test("there and back again ends where it began", () => {
    const there = dragWindowLevel({ centre: 0.4, width: 0.5, inverted: false }, 0.2, 0.1);
    const back = dragWindowLevel(there, -0.2, -0.1);
    expect(back.centre).toBeCloseTo(0.4, 9);
    expect(back.width).toBeCloseTo(0.5, 9);
  });
});

test("windows differ as soon as one value differs", () => {
  expect(isSameWindow(FULL_RANGE, { ...FULL_RANGE })).toBe(true);
  expect(isSameWindow(FULL_RANGE, { ...FULL_RANGE, centre: 0.6 })).toBe(false);
  expect(isSameWindow(FULL_RANGE, { ...FULL_RANGE, width: 0.6 })).toBe(false);
  expect(isSameWindow(FULL_RANGE, { ...FULL_RANGE, inverted: true })).toBe(false);
});

describe("the address of a picture", () => {
  const paramsOf = (greys: WindowLevel) =>
    Object.fromEntries(new URL(pictureAddress("f1", greys, 1024), "http://here").searchParams);

  test("has only the size at the full range", () => {
    expect(pictureAddress("f1", FULL_RANGE, 1024)).toBe("/api/v1/films/f1/picture.png?side=1024");
  });

  test("has window and level once they were changed", () => {
    expect(paramsOf({ centre: 0.25, width: 1 / 3, inverted: false })).toEqual({
      side: "1024",
      centre: "0.2500",
      width: "0.3333",
    });
  });

  test("has inversion only if the film is inverted", () => {
    expect(paramsOf({ ...FULL_RANGE, inverted: true }).inverted).toBe("true");
    expect(paramsOf({ ...FULL_RANGE, width: 0.5 })).not.toHaveProperty("inverted");
  });
});
