import { describe, expect, test } from "vitest";

import { forManyCases, type RandomSource } from "../test/randomCases";
import {
  type Box,
  boxBetween,
  centredBox,
  contains,
  dragBox,
  type Grip,
  gripAt,
  isAtLeast,
  isSameBox,
  roundBox,
  WHOLE_BOX,
} from "./box";

const FILM = { width: 1000, height: 800 };
const CAVITY: Box = { x1: 200, y1: 100, x2: 400, y2: 250 };

const someGrip = (random: RandomSource): Grip => ({
  horizontal: random.oneOf(["x1", "x2", null]),
  vertical: random.oneOf(["y1", "y2", null]),
});
const someBox = (random: RandomSource): Box =>
  boxBetween(
    { x: random.between(0, FILM.width), y: random.between(0, FILM.height) },
    { x: random.between(0, FILM.width), y: random.between(0, FILM.height) },
    FILM,
  );

function expectOnFilm(box: Box): void {
  expect(0 <= box.x1 && box.x1 <= box.x2 && box.x2 <= FILM.width + 1e-9, JSON.stringify(box)).toBe(true);
  expect(0 <= box.y1 && box.y1 <= box.y2 && box.y2 <= FILM.height + 1e-9, JSON.stringify(box)).toBe(true);
}

describe("a box between two points", () => {
  test("is the same from whichever corner it is drawn", () => {
    const corners: [number, number, number, number][] = [
      [200, 100, 400, 250],
      [400, 250, 200, 100],
      [200, 250, 400, 100],
      [400, 100, 200, 250],
    ];
    for (const [x, y, toX, toY] of corners)
      expect(boxBetween({ x, y }, { x: toX, y: toY }, FILM)).toEqual(CAVITY);
  });

  test("ends where the film ends", () => {
    expect(boxBetween({ x: -50, y: 700 }, { x: 2000, y: 900 }, FILM)).toEqual({
      x1: 0,
      y1: 700,
      x2: 1000,
      y2: 800,
    });
  });

  test("is empty if both points are beside the film", () => {
    const beside = boxBetween({ x: -50, y: 10 }, { x: -20, y: 300 }, FILM);
    expect(isAtLeast(beside, 1)).toBe(false);
  });
});

describe("the minimum size of a box", () => {
  test("must be reached in both directions", () => {
    expect(isAtLeast({ x1: 0, y1: 0, x2: 5, y2: 5 }, 5)).toBe(true);
    expect(isAtLeast({ x1: 0, y1: 0, x2: 4, y2: 50 }, 5)).toBe(false);
    expect(isAtLeast({ x1: 0, y1: 0, x2: 50, y2: 4 }, 5)).toBe(false);
  });
});

describe("dragging a box", () => {
  test("by its inside moves the whole box", () => {
    expect(dragBox(CAVITY, WHOLE_BOX, 30, -20, FILM)).toEqual({ x1: 230, y1: 80, x2: 430, y2: 230 });
  });

  test("it stops at the edge of the film and keeps its size", () => {
    expect(dragBox(CAVITY, WHOLE_BOX, 5000, -5000, FILM)).toEqual({ x1: 800, y1: 0, x2: 1000, y2: 150 });
    expect(dragBox(CAVITY, WHOLE_BOX, -5000, 5000, FILM)).toEqual({ x1: 0, y1: 650, x2: 200, y2: 800 });
  });

  const grips: [string, Grip, Partial<Box>][] = [
    ["left edge", { horizontal: "x1", vertical: null }, { x1: 210 }],
    ["right edge", { horizontal: "x2", vertical: null }, { x2: 410 }],
    ["upper edge", { horizontal: null, vertical: "y1" }, { y1: 120 }],
    ["lower edge", { horizontal: null, vertical: "y2" }, { y2: 270 }],
    ["upper left corner", { horizontal: "x1", vertical: "y1" }, { x1: 210, y1: 120 }],
    ["upper right corner", { horizontal: "x2", vertical: "y1" }, { x2: 410, y1: 120 }],
    ["lower left corner", { horizontal: "x1", vertical: "y2" }, { x1: 210, y2: 270 }],
    ["lower right corner", { horizontal: "x2", vertical: "y2" }, { x2: 410, y2: 270 }],
  ];
  test.each(grips)("held at its %s, nothing but that moves", (_, grip, changed) => {
    expect(dragBox(CAVITY, grip, 10, 20, FILM)).toEqual({ ...CAVITY, ...changed });
  });

  test("edges that pass each other are swapped", () => {
    const turned = dragBox(CAVITY, { horizontal: "x1", vertical: "y1" }, 250, 200, FILM);
    expect(turned).toEqual({ x1: 400, y1: 250, x2: 450, y2: 300 });
  });

  test("an edge stops where the film stops", () => {
    expect(dragBox(CAVITY, { horizontal: "x2", vertical: null }, 9000, 0, FILM)).toEqual({
      ...CAVITY,
      x2: 1000,
    });
  });

  test("wherever it is held and dragged, it stays on the film", () => {
    forManyCases((random) => {
      const [dx, dy] = [random.between(-3000, 3000), random.between(-3000, 3000)];
      expectOnFilm(dragBox(someBox(random), someGrip(random), dx, dy, FILM));
    });
  });

  test("moved as a whole, it never changes its size", () => {
    forManyCases((random) => {
      const box = someBox(random);
      const after = dragBox(box, WHOLE_BOX, random.between(-3000, 3000), random.between(-3000, 3000), FILM);
      expect(after.x2 - after.x1).toBeCloseTo(box.x2 - box.x1, 6);
      expect(after.y2 - after.y1).toBeCloseTo(box.y2 - box.y1, 6);
    });
  });
});

describe("the grip under the pointer", () => {
  const positions: [string, number, number, Grip | null][] = [
    ["the upper left corner", 203, 98, { horizontal: "x1", vertical: "y1" }],
    ["the upper right corner", 396, 104, { horizontal: "x2", vertical: "y1" }],
    ["the lower left corner", 195, 255, { horizontal: "x1", vertical: "y2" }],
    ["the lower right corner", 405, 245, { horizontal: "x2", vertical: "y2" }],
    ["the left edge", 196, 170, { horizontal: "x1", vertical: null }],
    ["the right edge", 404, 170, { horizontal: "x2", vertical: null }],
    ["the upper edge", 300, 96, { horizontal: null, vertical: "y1" }],
    ["the lower edge", 300, 254, { horizontal: null, vertical: "y2" }],
    ["the inside", 300, 170, WHOLE_BOX],
    ["nothing, beside it", 420, 170, null],
    ["nothing, though level with an edge", 203, 300, null],
  ];
  test.each(positions)("is %s", (_, x, y, grip) => {
    expect(gripAt(CAVITY, { x, y }, 6)).toEqual(grip);
  });

  test("of two edges within reach, the nearer one is taken", () => {
    const sliver: Box = { x1: 100, y1: 100, x2: 106, y2: 400 };
    expect(gripAt(sliver, { x: 101, y: 250 }, 9)?.horizontal).toBe("x1");
    expect(gripAt(sliver, { x: 105, y: 250 }, 9)?.horizontal).toBe("x2");
  });

  test("a box contains its edges and nothing outside", () => {
    expect(contains(CAVITY, { x: 200, y: 250 })).toBe(true);
    expect(contains(CAVITY, { x: 199, y: 250 })).toBe(false);
    expect(contains(CAVITY, { x: 300, y: 251 })).toBe(false);
  });
});

describe("a stored box", () => {
  test("is rounded to tenths of a pixel", () => {
    expect(roundBox({ x1: 1.04, y1: 1.05, x2: 99.999, y2: 12 })).toEqual({ x1: 1, y1: 1.1, x2: 100, y2: 12 });
  });

  test("differs as soon as one edge differs", () => {
    expect(isSameBox(CAVITY, { ...CAVITY })).toBe(true);
    for (const edge of ["x1", "y1", "x2", "y2"] as const)
      expect(isSameBox(CAVITY, { ...CAVITY, [edge]: CAVITY[edge] + 0.1 }), edge).toBe(false);
  });
});

test("a box drawn by key lies in the middle and is a fifth of the film wide and high", () => {
  expect(centredBox(FILM)).toEqual({ x1: 400, y1: 320, x2: 600, y2: 480 });
});
