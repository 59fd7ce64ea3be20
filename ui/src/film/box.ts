/** Rectangles in pixels of the original film. */
import { clamp, type Point, type Size } from "./panZoom";

export interface Box {
  x1: number;
  y1: number;
  x2: number;
  y2: number;
}

/** Edges that follow the pointer. With both null, the whole box moves. */
export interface Grip {
  horizontal: "x1" | "x2" | null;
  vertical: "y1" | "y2" | null;
}

export const WHOLE_BOX: Grip = { horizontal: null, vertical: null };

/** The box between two points, clipped to the film. */
export function boxBetween(a: Point, b: Point, film: Size): Box {
  const [x1, x2] = sorted(clamp(a.x, 0, film.width), clamp(b.x, 0, film.width));
  const [y1, y2] = sorted(clamp(a.y, 0, film.height), clamp(b.y, 0, film.height));
  return { x1, y1, x2, y2 };
}

export function isAtLeast(box: Box, least: number): boolean {
  return box.x2 - box.x1 >= least && box.y2 - box.y1 >= least;
}

/** Drag a box by its grip. Edges that pass each other are swapped. */
export function dragBox(box: Box, grip: Grip, dx: number, dy: number, film: Size): Box {
  if (grip.horizontal === null && grip.vertical === null) {
    const right = clamp(dx, -box.x1, film.width - box.x2);
    const down = clamp(dy, -box.y1, film.height - box.y2);
    return { x1: box.x1 + right, y1: box.y1 + down, x2: box.x2 + right, y2: box.y2 + down };
  }
  const edges = { ...box };
  if (grip.horizontal) edges[grip.horizontal] += dx;
  if (grip.vertical) edges[grip.vertical] += dy;
  return boxBetween({ x: edges.x1, y: edges.y1 }, { x: edges.x2, y: edges.y2 }, film);
}

/** The grip at a point: an edge or corner within `reach`, the inside, or null. */
export function gripAt(box: Box, at: Point, reach: number): Grip | null {
  const inside =
    at.x >= box.x1 - reach && at.x <= box.x2 + reach && at.y >= box.y1 - reach && at.y <= box.y2 + reach;
  if (!inside) return null;
  const horizontal = nearestEdge(at.x, box.x1, box.x2, reach);
  const vertical = nearestEdge(at.y, box.y1, box.y2, reach);
  return {
    horizontal: horizontal === null ? null : horizontal === 0 ? "x1" : "x2",
    vertical: vertical === null ? null : vertical === 0 ? "y1" : "y2",
  };
}

export function contains(box: Box, at: Point): boolean {
  return at.x >= box.x1 && at.x <= box.x2 && at.y >= box.y1 && at.y <= box.y2;
}

export function isSameBox(a: Box, b: Box): boolean {
  return a.x1 === b.x1 && a.y1 === b.y1 && a.x2 === b.x2 && a.y2 === b.y2;
}

/** Round to tenths of a pixel: precise enough, and readable in the log. */
export function roundBox(box: Box): Box {
  const tenth = (value: number) => Math.round(value * 10) / 10;
  return { x1: tenth(box.x1), y1: tenth(box.y1), x2: tenth(box.x2), y2: tenth(box.y2) };
}

/** A box in the middle of the film, for drawing by keyboard. */
export function centredBox(film: Size): Box {
  return roundBox({
    x1: film.width * 0.4,
    y1: film.height * 0.4,
    x2: film.width * 0.6,
    y2: film.height * 0.6,
  });
}

function nearestEdge(value: number, low: number, high: number, reach: number): 0 | 1 | null {
  const [first, second] = [Math.abs(value - low), Math.abs(value - high)];
  if (Math.min(first, second) > reach) return null;
  return first <= second ? 0 : 1;
}

function sorted(a: number, b: number): [number, number] {
  return a <= b ? [a, b] : [b, a];
}
