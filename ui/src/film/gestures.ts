/** Pointer gestures on a film: draw or edit a box, pan, pinch, change window and level. */
import { type Box, boxBetween, dragBox, type Grip, gripAt, WHOLE_BOX } from "./box";
import { panView, type Point, type Size, toFilm, type View, zoomView } from "./panZoom";
import { dragWindowLevel, type WindowLevel } from "./windowLevel";

export type Tool = "draw" | "pan" | "windowLevel";

/** The state when the gesture began. Each move is computed from it, so rounding errors do not add up. */
export type Gesture =
  | { kind: "draw"; from: Point; filmFrom: Point }
  | { kind: "edit"; from: Point; box: Box; grip: Grip }
  | { kind: "pan"; from: Point; view: View }
  | { kind: "windowLevel"; from: Point; windowLevel: WindowLevel }
  | { kind: "pinch"; from: [Point, Point]; view: View };

export interface GestureContext {
  film: Size;
  viewport: Size;
  view: View;
  windowLevel: WindowLevel;
  tool: Tool;
  /** The box that can be edited. */
  editable: Box | null;
}

const GRIP_REACH = 9;
/** Shorter movements, in screen pixels, are clicks. */
export const DRAG_THRESHOLD = 4;

export interface Press {
  at: Point;
  button: number;
  /** The space bar is held down. */
  panning: boolean;
}

export function startGesture({ at, button, panning }: Press, context: GestureContext): Gesture {
  const { view, windowLevel, tool, editable } = context;
  if (button === 1 || panning || (button === 0 && tool === "pan")) return { kind: "pan", from: at, view };
  if (button === 2 || tool === "windowLevel")
    return { kind: "windowLevel", from: at, windowLevel: windowLevel };
  const filmFrom = toFilm(view, at);
  const grip = editable && gripAt(editable, filmFrom, GRIP_REACH / view.scale);
  if (editable && grip) return { kind: "edit", from: at, box: editable, grip };
  return { kind: "draw", from: at, filmFrom };
}

export function startPinch(a: Point, b: Point, view: View): Gesture {
  return { kind: "pinch", from: [a, b], view };
}

export type Effect = { box: Box } | { view: View } | { windowLevel: WindowLevel };

export function applyGesture(gesture: Gesture, at: Point, context: GestureContext): Effect {
  const { film, viewport } = context;
  switch (gesture.kind) {
    case "draw":
      return { box: boxBetween(gesture.filmFrom, toFilm(context.view, at), film) };
    case "edit": {
      const [dx, dy] = [
        (at.x - gesture.from.x) / context.view.scale,
        (at.y - gesture.from.y) / context.view.scale,
      ];
      return { box: dragBox(gesture.box, gesture.grip, dx, dy, film) };
    }
    case "pan":
      return { view: panView(gesture.view, at.x - gesture.from.x, at.y - gesture.from.y, film, viewport) };
    case "windowLevel":
      return {
        windowLevel: dragWindowLevel(
          gesture.windowLevel,
          (at.x - gesture.from.x) / viewport.width,
          (at.y - gesture.from.y) / viewport.height,
        ),
      };
    case "pinch":
      return { view: gesture.view };
  }
}

/** Zoom and pan so that the film point between the two pointers stays between them. */
export function applyPinch(
  gesture: Gesture & { kind: "pinch" },
  pointers: [Point, Point],
  context: GestureContext,
): View {
  const [before, middle] = [midpoint(gesture.from), midpoint(pointers)];
  const factor = distance(pointers) / Math.max(distance(gesture.from), 1);
  const grown = zoomView(gesture.view, factor, before, context.film, context.viewport);
  return panView(grown, middle.x - before.x, middle.y - before.y, context.film, context.viewport);
}

/** CSS cursor at a point of the film. */
export function cursorAt(at: Point, context: GestureContext, panning: boolean): string {
  if (panning || context.tool === "pan") return "grab";
  if (context.tool === "windowLevel") return "ns-resize";
  const grip =
    context.editable && gripAt(context.editable, toFilm(context.view, at), GRIP_REACH / context.view.scale);
  if (!grip) return "crosshair";
  if (grip.horizontal && grip.vertical)
    return (grip.horizontal === "x1") === (grip.vertical === "y1") ? "nwse-resize" : "nesw-resize";
  if (grip.horizontal) return "ew-resize";
  return grip.vertical ? "ns-resize" : "move";
}

/** Move the box by an arrow key; with `resize`, move its right or lower edge. */
export function nudgeBox(box: Box, key: string, step: number, resize: boolean, film: Size): Box {
  const [dx, dy] = ARROWS[key] ?? [0, 0];
  const grip: Grip = resize ? { horizontal: dx ? "x2" : null, vertical: dy ? "y2" : null } : WHOLE_BOX;
  return dragBox(box, grip, dx * step, dy * step, film);
}

export const ARROWS: Record<string, [number, number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

function midpoint([a, b]: [Point, Point]): Point {
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}

function distance([a, b]: [Point, Point]): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}
