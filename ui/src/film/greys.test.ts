import { describe, expect, test } from "vitest";

import { type Chance, often } from "../test/seeded";
import { address, draggedGreys, type Greys, PLAIN, sameGreys, table } from "./greys";

const ALL = Array.from({ length: 256 }, (_, grey) => grey);
const someGreys = (chance: Chance): Greys => ({
  centre: chance.between(0, 1),
  width: chance.between(0.02, 2),
  inverted: false,
});

describe("what each grey becomes", () => {
  test("nothing changes as the film came", () => {
    expect([...table(PLAIN)]).toEqual(ALL);
  });

  test("inverted, black is white and white is black", () => {
    expect([...table({ ...PLAIN, inverted: true })]).toEqual([...ALL].reverse());
  });

  test("whatever the window, a brighter spot never becomes the darker one", () => {
    often((chance) => {
      const greys = [...table(someGreys(chance))];
      expect(greys).toEqual([...greys].sort((one, other) => one - other));
    });
  });

  test("inverting is the same as looking at the negative", () => {
    often((chance) => {
      const greys = someGreys(chance);
      const negative = [...table({ ...greys, inverted: true })];
      const off = [...table(greys)].map((shown, grey) => Math.abs(shown + (negative[grey] ?? NaN) - 255));
      expect(Math.max(...off)).toBeLessThanOrEqual(1);
    });
  });

  test("a narrow window is black below, white above, and all greys in between", () => {
    const greys = table({ centre: 0.5, width: 0.2, inverted: false });
    expect(greys[Math.floor(0.39 * 255)]).toBe(0);
    expect(greys[Math.ceil(0.61 * 255)]).toBe(255);
    expect(greys[Math.round(0.45 * 255)]).toBeGreaterThan(40);
    expect(greys[Math.round(0.45 * 255)]).toBeLessThan(90);
  });
});

describe("dragging greys", () => {
  test("to the right is a wider window, to the left a narrower one", () => {
    expect(draggedGreys(PLAIN, 0.1, 0).width).toBeGreaterThan(1);
    expect(draggedGreys(PLAIN, -0.1, 0).width).toBeLessThan(1);
  });

  test("down is brighter: every grey is shown at least as bright as before", () => {
    const before = table(PLAIN);
    const after = table(draggedGreys(PLAIN, 0, 0.2));
    expect([...after].every((shown, grey) => shown >= (before[grey] ?? 0))).toBe(true);
    expect(after[128]).toBeGreaterThan(128);
  });

  test("no window is narrower than a fiftieth or wider than twice all greys, however far one drags", () => {
    expect(draggedGreys(PLAIN, -50, 0).width).toBe(0.02);
    expect(draggedGreys(PLAIN, 50, 0).width).toBe(2);
    expect(draggedGreys(PLAIN, 0, 50).centre).toBe(0);
    expect(draggedGreys(PLAIN, 0, -50).centre).toBe(1);
  });

  test("an inverted film stays inverted", () => {
    expect(draggedGreys({ ...PLAIN, inverted: true }, 0.3, 0.3).inverted).toBe(true);
  });

  test("there and back again ends where it began", () => {
    const there = draggedGreys({ centre: 0.4, width: 0.5, inverted: false }, 0.2, 0.1);
    const back = draggedGreys(there, -0.2, -0.1);
    expect(back.centre).toBeCloseTo(0.4, 9);
    expect(back.width).toBeCloseTo(0.5, 9);
  });
});

test("greys are others as soon as one of them differs", () => {
  expect(sameGreys(PLAIN, { ...PLAIN })).toBe(true);
  expect(sameGreys(PLAIN, { ...PLAIN, centre: 0.6 })).toBe(false);
  expect(sameGreys(PLAIN, { ...PLAIN, width: 0.6 })).toBe(false);
  expect(sameGreys(PLAIN, { ...PLAIN, inverted: true })).toBe(false);
});

describe("the address of a picture", () => {
  const asked = (greys: Greys) =>
    Object.fromEntries(new URL(address("f1", greys, 1024), "http://here").searchParams);

  test("names nothing but the size for a film as it came", () => {
    expect(address("f1", PLAIN, 1024)).toBe("/api/v1/films/f1/picture.png?side=1024");
  });

  test("names window and level once they were turned", () => {
    expect(asked({ centre: 0.25, width: 1 / 3, inverted: false })).toEqual({
      side: "1024",
      centre: "0.2500",
      width: "0.3333",
    });
  });

  test("names inversion only where the film is inverted", () => {
    expect(asked({ ...PLAIN, inverted: true }).inverted).toBe("true");
    expect(asked({ ...PLAIN, width: 0.5 })).not.toHaveProperty("inverted");
  });
});
