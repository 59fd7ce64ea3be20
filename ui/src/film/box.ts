/** Rectangles in pixels of the original film. */
import { clamp, type Point, type Size } from "./view";

export interface Box {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

/** Which edges of a box follow the pointer; none of them: all of it does. */
export interface Grip {
  horizontal: "x1" | "x2" | null;
  vertical: "y1" | "y2" | null;
}

export const WHOLE: Grip = { horizontal: null, vertical: null };

/** The box between two points, as far as it lies on the film. */
export function between(one: Point, other: Point, film: Size): Box {
  const [x1, x2] = sorted(clamp(one.x, 0, film.width), clamp(other.x, 0, film.width));
  const [y1, y2] = sorted(clamp(one.y, 0, film.height), clamp(other.y, 0, film.height));
  return { x1, y1, x2, y2 };
}

export function isThere(box: Box, least: number): boolean {
  return box.x2 - box.x1 >= least && box.y2 - box.y1 >= least;
}

/** A box after its grip was dragged by so much; edges that pass each other change places. */
export function dragged(box: Box, grip: Grip, dx: number, dy: number, film: Size): Box {
  if (grip.horizontal === null && grip.vertical === null) {
    const right = clamp(dx, -box.x1, film.width - box.x2);
    const down = clamp(dy, -box.y1, film.height - box.y2);
    return { x1: box.x1 + right, y1: box.y1 + down, x2: box.x2 + right, y2: box.y2 + down };
  }
  const edges = { ...box };
  if (grip.horizontal) edges[grip.horizontal] += dx;
  if (grip.vertical) edges[grip.vertical] += dy;
  return between({ x: edges.x1, y: edges.y1 }, { x: edges.x2, y: edges.y2 }, film);
}

/** What lies under the pointer: an edge or corner within `reach`, the inside, or nothing. */
export function gripAt(box: Box, at: Point, reach: number): Grip | null {
  const inside =
    at.x >= box.x1 - reach && at.x <= box.x2 + reach && at.y >= box.y1 - reach && at.y <= box.y2 + reach;
  if (!inside) return null;
  const horizontal = nearest(at.x, box.x1, box.x2, reach);
  const vertical = nearest(at.y, box.y1, box.y2, reach);
  return {
    horizontal: horizontal === null ? null : horizontal === 0 ? "x1" : "x2",
    vertical: vertical === null ? null : vertical === 0 ? "y1" : "y2",
  };
}

export function holds(box: Box, at: Point): boolean {
  return at.x >= box.x1 && at.x <= box.x2 && at.y >= box.y1 && at.y <= box.y2;
}

export function sameBox(one: Box, other: Box): boolean {
  return one.x1 === other.x1 && one.y1 === other.y1 && one.x2 === other.x2 && one.y2 === other.y2;
}

/** Tenths of a pixel are finer than anybody draws, and read well in a log. */
export function rounded(box: Box): Box {
  const tenth = (value: number) => Math.round(value * 10) / 10;
  return { x1: tenth(box.x1), y1: tenth(box.y1), x2: tenth(box.x2), y2: tenth(box.y2) };
}

/** A box in the middle of a film, for whoever draws without a pointer. */
export function middling(film: Size): Box {
  return rounded({
    x1: film.width * 0.4,
    y1: film.height * 0.4,
    x2: film.width * 0.6,
    y2: film.height * 0.6,
  });
}

function nearest(value: number, low: number, high: number, reach: number): 0 | 1 | null {
  const [first, second] = [Math.abs(value - low), Math.abs(value - high)];
  if (Math.min(first, second) > reach) return null;
  return first <= second ? 0 : 1;
}

function sorted(one: number, other: number): [number, number] {
  return one <= other ? [one, other] : [other, one];
}
