import { describe, expect, test } from "vitest";

import { type RandomSource, forManyCases } from "../test/randomCases";
import {
  fitView,
  resizeView,
  panView,
  type Point,
  type Size,
  toFilm,
  toScreen,
  type View,
  zoomView,
} from "./panZoom";

const someFilm = (chance: RandomSource): Size => ({
  width: chance.between(100, 4000),
  height: chance.between(100, 4000),
});
const someRoom = (chance: RandomSource): Size => ({
  width: chance.between(300, 2500),
  height: chance.between(300, 1500),
});
const someSpot = (chance: RandomSource, { width, height }: Size): Point => ({
  x: chance.between(0, width),
  y: chance.between(0, height),
});

/** Somewhere a hand may have left the film. */
function someView(chance: RandomSource, film: Size, room: Size): View {
  const grown = zoomView(fitView(film, room), chance.between(0.5, 6), someSpot(chance, room), film, room);
  return panView(grown, chance.between(-900, 900), chance.between(-900, 900), film, room);
}

/** How much of the film lies in the room, in screen pixels across and down. */
function inSight(view: View, film: Size, room: Size): Point {
  const [start, end] = [toScreen(view, { x: 0, y: 0 }), toScreen(view, { x: film.width, y: film.height })];
  return {
    x: Math.min(end.x, room.width) - Math.max(start.x, 0),
    y: Math.min(end.y, room.height) - Math.max(start.y, 0),
  };
}

function expectNear(actual: Point, expected: Point): void {
  expect(actual.x).toBeCloseTo(expected.x, 6);
  expect(actual.y).toBeCloseTo(expected.y, 6);
}

describe("a fitted film", () => {
  test("fills a room of its own shape exactly", () => {
    expect(fitView({ width: 2000, height: 1000 }, { width: 500, height: 250 })).toEqual({
      scale: 0.25,
      x: 0,
      y: 0,
    });
  });

  test("is whole, in the middle, and touches two edges of the room", () => {
    forManyCases((chance) => {
      const [film, room] = [someFilm(chance), someRoom(chance)];
      const view = fitView(film, room);
      expectNear(toScreen(view, { x: film.width / 2, y: film.height / 2 }), {
        x: room.width / 2,
        y: room.height / 2,
      });
      const seen = inSight(view, film, room);
      expectNear(seen, { x: film.width * view.scale, y: film.height * view.scale });
      expect(Math.min(room.width - seen.x, room.height - seen.y)).toBeCloseTo(0, 6);
    });
  });
});

describe("screen and film", () => {
  test("a screen pixel is two film pixels when the film is shown half as large", () => {
    const view = { scale: 0.5, x: 10, y: 20 };
    expect(toFilm(view, { x: 11, y: 22 })).toEqual({ x: 2, y: 4 });
    expect(toScreen(view, { x: 2, y: 4 })).toEqual({ x: 11, y: 22 });
  });

  test("there and back again ends where it began", () => {
    forManyCases((chance) => {
      const [film, room] = [someFilm(chance), someRoom(chance)];
      const view = someView(chance, film, room);
      const spot = someSpot(chance, room);
      expectNear(toScreen(view, toFilm(view, spot)), spot);
    });
  });
});

describe("zooming", () => {
  const film = { width: 2000, height: 2000 };
  const room = { width: 1000, height: 1000 };
  const middle = { x: 500, y: 500 };

  test("what lies under the pointer stays under it", () => {
    forManyCases((chance) => {
      const [film, room] = [someFilm(chance), someRoom(chance)];
      const view = fitView(film, room);
      const onFilm = someSpot(chance, film);
      const at = toScreen(view, onFilm);
      const closer = zoomView(view, chance.between(1, 8), at, film, room);
      expect(closer.scale).toBeGreaterThanOrEqual(view.scale);
      expectNear(toFilm(closer, at), onFilm);
    });
  });

  test("a film is never larger than sixteen screen pixels for one of its own", () => {
    expect(zoomView(fitView(film, room), 1e6, middle, film, room).scale).toBe(16);
  });

  test("a film so small that sixteenfold does not fill the room still fits", () => {
    const stamp = { width: 10, height: 10 };
    expect(zoomView(fitView(stamp, room), 1e6, middle, stamp, room).scale).toBe(100);
  });

  test("a film is never smaller than half of what fits", () => {
    expect(zoomView(fitView(film, room), 1e-6, middle, film, room).scale).toBe(0.25);
  });

  test("at the limit nothing moves any more", () => {
    const closest = zoomView(fitView(film, room), 1e6, middle, film, room);
    expect(zoomView(closest, 1.25, { x: 130, y: 777 }, film, room)).toEqual(closest);
  });
});

describe("moving the film", () => {
  test("it follows the hand", () => {
    const view = { scale: 1, x: 0, y: 0 };
    const size = { width: 1000, height: 1000 };
    expect(panView(view, 30, -40, size, size)).toEqual({ scale: 1, x: 30, y: -40 });
  });

  test("however far it is pushed or zoomed, sixty screen pixels of it stay in sight", () => {
    forManyCases((chance) => {
      const [film, room] = [someFilm(chance), someRoom(chance)];
      // Narrow films have less than that to show, however they lie.
      const view = fitView(film, room);
      const least = Math.min(60, film.width * view.scale * 0.5, film.height * view.scale * 0.5);
      const pushed = panView(view, chance.between(-1e5, 1e5), chance.between(-1e5, 1e5), film, room);
      const zoomedOut = zoomView(pushed, chance.between(0.1, 9), { x: -5000, y: 5000 }, film, room);
      for (const view of [pushed, zoomedOut]) {
        const seen = inSight(view, film, room);
        expect(Math.min(seen.x, seen.y)).toBeGreaterThanOrEqual(least - 1e-6);
      }
    });
  });
});

describe("a window that changes its size", () => {
  test("keeps what was in the middle in the middle", () => {
    forManyCases((chance) => {
      const [film, before, after] = [someFilm(chance), someRoom(chance), someRoom(chance)];
      const onFilm = someSpot(chance, film);
      const fit = fitView(film, before);
      // Zoomed in at a spot of the film, which is then carried to the middle.
      const closer = zoomView(fit, 2, toScreen(fit, onFilm), film, before);
      const at = toScreen(closer, onFilm);
      const view = panView(closer, before.width / 2 - at.x, before.height / 2 - at.y, film, before);
      const resized = resizeView(view, film, before, after);
      expectNear(toFilm(resized, { x: after.width / 2, y: after.height / 2 }), onFilm);
    });
  });

  test("keeps a fitted film fitted", () => {
    forManyCases((chance) => {
      const [film, before, after] = [someFilm(chance), someRoom(chance), someRoom(chance)];
      const [actual, expected] = [
        resizeView(fitView(film, before), film, before, after),
        fitView(film, after),
      ];
      expect(actual.scale).toBeCloseTo(expected.scale, 9);
      expectNear(actual, expected);
    });
  });
});
