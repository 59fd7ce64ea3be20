/** What a hand does on a film: drawing, moving a box, panning, pinching, dragging greys. */
import { between, type Box, dragged, type Grip, gripAt, WHOLE } from "./box";
import { draggedGreys, type Greys } from "./greys";
import { panned, type Point, type Size, toFilm, type View, zoomed } from "./view";

export type Tool = "draw" | "pan" | "greys";

/** What the gesture began with; every move is counted from there, so that rounding never adds up. */
export type Gesture =
  | { kind: "draw"; from: Point; filmFrom: Point }
  | { kind: "edit"; from: Point; box: Box; grip: Grip }
  | { kind: "pan"; from: Point; view: View }
  | { kind: "greys"; from: Point; greys: Greys }
  | { kind: "pinch"; from: [Point, Point]; view: View };

export interface Scene {
  film: Size;
  room: Size;
  view: View;
  greys: Greys;
  tool: Tool;
  /** The box that can be taken hold of. */
  editable: Box | null;
}

const REACH = 9;
/** Less than this, in screen pixels, is a click and no drag. */
export const A_DRAG = 4;

export interface Press {
  at: Point;
  button: number;
  /** Space is held down. */
  panning: boolean;
}

export function begun({ at, button, panning }: Press, scene: Scene): Gesture {
  const { view, greys, tool, editable } = scene;
  if (button === 1 || panning || (button === 0 && tool === "pan")) return { kind: "pan", from: at, view };
  if (button === 2 || tool === "greys") return { kind: "greys", from: at, greys };
  const filmFrom = toFilm(view, at);
  const grip = editable && gripAt(editable, filmFrom, REACH / view.scale);
  if (editable && grip) return { kind: "edit", from: at, box: editable, grip };
  return { kind: "draw", from: at, filmFrom };
}

export function pinched(one: Point, other: Point, view: View): Gesture {
  return { kind: "pinch", from: [one, other], view };
}

export type Effect = { box: Box } | { view: View } | { greys: Greys };

export function after(gesture: Gesture, at: Point, scene: Scene): Effect {
  const { film, room } = scene;
  switch (gesture.kind) {
    case "draw":
      return { box: between(gesture.filmFrom, toFilm(scene.view, at), film) };
    case "edit": {
      const [dx, dy] = [
        (at.x - gesture.from.x) / scene.view.scale,
        (at.y - gesture.from.y) / scene.view.scale,
      ];
      return { box: dragged(gesture.box, gesture.grip, dx, dy, film) };
    }
    case "pan":
      return { view: panned(gesture.view, at.x - gesture.from.x, at.y - gesture.from.y, film, room) };
    case "greys":
      return {
        greys: draggedGreys(
          gesture.greys,
          (at.x - gesture.from.x) / room.width,
          (at.y - gesture.from.y) / room.height,
        ),
      };
    case "pinch":
      return { view: gesture.view };
  }
}

/** Two fingers: what was between them stays between them. */
export function afterPinch(gesture: Gesture & { kind: "pinch" }, now: [Point, Point], scene: Scene): View {
  const [before, middle] = [between2(gesture.from), between2(now)];
  const factor = apart(now) / Math.max(apart(gesture.from), 1);
  const grown = zoomed(gesture.view, factor, before, scene.film, scene.room);
  return panned(grown, middle.x - before.x, middle.y - before.y, scene.film, scene.room);
}

/** What the pointer looks like over the film. */
export function cursor(at: Point, scene: Scene, panning: boolean): string {
  if (panning || scene.tool === "pan") return "grab";
  if (scene.tool === "greys") return "ns-resize";
  const grip = scene.editable && gripAt(scene.editable, toFilm(scene.view, at), REACH / scene.view.scale);
  if (!grip) return "crosshair";
  if (grip.horizontal && grip.vertical)
    return (grip.horizontal === "x1") === (grip.vertical === "y1") ? "nwse-resize" : "nesw-resize";
  if (grip.horizontal) return "ew-resize";
  return grip.vertical ? "ns-resize" : "move";
}

/** Arrow keys: move the box by a step, or with `resize` its right and lower edge. */
export function nudged(box: Box, key: string, step: number, resize: boolean, film: Size): Box {
  const [dx, dy] = ARROWS[key] ?? [0, 0];
  const grip: Grip = resize ? { horizontal: dx ? "x2" : null, vertical: dy ? "y2" : null } : WHOLE;
  return dragged(box, grip, dx * step, dy * step, film);
}

export const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

function between2([one, other]: [Point, Point]): Point {
  return { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
}

function apart([one, other]: [Point, Point]): number {
  return Math.hypot(one.x - other.x, one.y - other.y);
}
