import { describe, expect, test } from "vitest";

import { forManyCases, type RandomSource } from "../test/randomCases";
import {
  fitView,
  panView,
  type Point,
  resizeView,
  type Size,
  toFilm,
  toScreen,
  type View,
  zoomView,
} from "./panZoom";

const randomFilm = (random: RandomSource): Size => ({
  width: random.between(100, 4000),
  height: random.between(100, 4000),
});
const randomViewport = (random: RandomSource): Size => ({
  width: random.between(300, 2500),
  height: random.between(300, 1500),
});
const randomSpot = (random: RandomSource, { width, height }: Size): Point => ({
  x: random.between(0, width),
  y: random.between(0, height),
});

/** A random view that panning and zooming can reach. */
function randomView(random: RandomSource, film: Size, viewport: Size): View {
  const grown = zoomView(
    fitView(film, viewport),
    random.between(0.5, 6),
    randomSpot(random, viewport),
    film,
    viewport,
  );
  return panView(grown, random.between(-900, 900), random.between(-900, 900), film, viewport);
}

/** Visible width and height of the film, in screen pixels. */
function inSight(view: View, film: Size, viewport: Size): Point {
  const [start, end] = [toScreen(view, { x: 0, y: 0 }), toScreen(view, { x: film.width, y: film.height })];
  return {
    x: Math.min(end.x, viewport.width) - Math.max(start.x, 0),
    y: Math.min(end.y, viewport.height) - Math.max(start.y, 0),
  };
}

function expectNear(actual: Point, expected: Point): void {
  expect(actual.x).toBeCloseTo(expected.x, 6);
  expect(actual.y).toBeCloseTo(expected.y, 6);
}

describe("a fitted film", () => {
  test("fills a viewport of its own shape exactly", () => {
    expect(fitView({ width: 2000, height: 1000 }, { width: 500, height: 250 })).toEqual({
      scale: 0.25,
      x: 0,
      y: 0,
    });
  });

  test("is shown whole, centred, and touches two edges of the viewport", () => {
    forManyCases((random) => {
      const [film, viewport] = [randomFilm(random), randomViewport(random)];
      const view = fitView(film, viewport);
      expectNear(toScreen(view, { x: film.width / 2, y: film.height / 2 }), {
        x: viewport.width / 2,
        y: viewport.height / 2,
      });
      const seen = inSight(view, film, viewport);
      expectNear(seen, { x: film.width * view.scale, y: film.height * view.scale });
      expect(Math.min(viewport.width - seen.x, viewport.height - seen.y)).toBeCloseTo(0, 6);
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
    forManyCases((random) => {
      const [film, viewport] = [randomFilm(random), randomViewport(random)];
      const view = randomView(random, film, viewport);
      const spot = randomSpot(random, viewport);
      expectNear(toScreen(view, toFilm(view, spot)), spot);
    });
  });
});

describe("zooming", () => {
  const film = { width: 2000, height: 2000 };
  const viewport = { width: 1000, height: 1000 };
  const middle = { x: 500, y: 500 };

  test("what lies under the pointer stays under it", () => {
    forManyCases((random) => {
      const [film, viewport] = [randomFilm(random), randomViewport(random)];
      const view = fitView(film, viewport);
      const onFilm = randomSpot(random, film);
      const at = toScreen(view, onFilm);
      const closer = zoomView(view, random.between(1, 8), at, film, viewport);
      expect(closer.scale).toBeGreaterThanOrEqual(view.scale);
      expectNear(toFilm(closer, at), onFilm);
    });
  });

  test("the largest scale is sixteen screen pixels per film pixel", () => {
    expect(zoomView(fitView(film, viewport), 1e6, middle, film, viewport).scale).toBe(16);
  });

  test("a very small film may still be scaled up to fit", () => {
    const stamp = { width: 10, height: 10 };
    expect(zoomView(fitView(stamp, viewport), 1e6, middle, stamp, viewport).scale).toBe(100);
  });

  test("the smallest scale is half of the fitted scale", () => {
    expect(zoomView(fitView(film, viewport), 1e-6, middle, film, viewport).scale).toBe(0.25);
  });

  test("at the limit, zooming does not move the film", () => {
    const closest = zoomView(fitView(film, viewport), 1e6, middle, film, viewport);
    expect(zoomView(closest, 1.25, { x: 130, y: 777 }, film, viewport)).toEqual(closest);
  });
});

describe("panning", () => {
  test("the film follows the pointer", () => {
    const view = { scale: 1, x: 0, y: 0 };
    const size = { width: 1000, height: 1000 };
    expect(panView(view, 30, -40, size, size)).toEqual({ scale: 1, x: 30, y: -40 });
  });

  test("sixty screen pixels of the film always stay in sight", () => {
    forManyCases((random) => {
      const [film, viewport] = [randomFilm(random), randomViewport(random)];
      // A narrow film may be smaller than that.
      const view = fitView(film, viewport);
      const least = Math.min(60, film.width * view.scale * 0.5, film.height * view.scale * 0.5);
      const pushed = panView(view, random.between(-1e5, 1e5), random.between(-1e5, 1e5), film, viewport);
      const zoomedOut = zoomView(pushed, random.between(0.1, 9), { x: -5000, y: 5000 }, film, viewport);
      for (const view of [pushed, zoomedOut]) {
        const seen = inSight(view, film, viewport);
        expect(Math.min(seen.x, seen.y)).toBeGreaterThanOrEqual(least - 1e-6);
      }
    });
  });
});

describe("a viewport that changes its size", () => {
  test("keeps the centre of the view", () => {
    forManyCases((random) => {
      const [film, before, after] = [randomFilm(random), randomViewport(random), randomViewport(random)];
      const onFilm = randomSpot(random, film);
      const fit = fitView(film, before);
      // Zoom in at a spot of the film, then pan it to the middle.
      const closer = zoomView(fit, 2, toScreen(fit, onFilm), film, before);
      const at = toScreen(closer, onFilm);
      const view = panView(closer, before.width / 2 - at.x, before.height / 2 - at.y, film, before);
      const resized = resizeView(view, film, before, after);
      expectNear(toFilm(resized, { x: after.width / 2, y: after.height / 2 }), onFilm);
    });
  });

  test("keeps a fitted film fitted", () => {
    forManyCases((random) => {
      const [film, before, after] = [randomFilm(random), randomViewport(random), randomViewport(random)];
      const [actual, expected] = [
        resizeView(fitView(film, before), film, before, after),
        fitView(film, after),
      ];
      expect(actual.scale).toBeCloseTo(expected.scale, 9);
      expectNear(actual, expected);
    });
  });
});
