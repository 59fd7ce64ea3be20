import { describe, expect, test } from "vitest";

import type { Box } from "./box";
import {
  applyGesture,
  applyPinch,
  cursorAt,
  type Gesture,
  type GestureContext,
  nudgeBox,
  startGesture,
  startPinch,
  type Tool,
} from "./gestures";
import { fitView, toFilm } from "./panZoom";
import { FULL_RANGE } from "./windowLevel";

const LEFT = 0;
const MIDDLE = 1;
const RIGHT = 2;

const FILM = { width: 2000, height: 2000 };
const VIEWPORT = { width: 1000, height: 1000 };
const CAVITY: Box = { x1: 400, y1: 400, x2: 800, y2: 600 };
/** A film at half scale, with the drawing tool. */
const CONTEXT: GestureContext = {
  film: FILM,
  viewport: VIEWPORT,
  view: fitView(FILM, VIEWPORT),
  windowLevel: FULL_RANGE,
  tool: "draw",
  editable: null,
};
const CONTEXT_WITH_BOX = { ...CONTEXT, editable: CAVITY };
const BESIDE = { x: 900, y: 900 };
const INSIDE = { x: 300, y: 250 };
const CORNER = { x: 401, y: 299 };

const press = (button: number, context: GestureContext, { at = BESIDE, panning = false } = {}) =>
  startGesture({ at, button, panning }, context);
const withTool = (tool: Tool): GestureContext => ({ ...CONTEXT, tool });

describe("what a press begins", () => {
  const begins: [string, Gesture, Gesture["kind"]][] = [
    ["the left button draws", press(LEFT, CONTEXT), "draw"],
    ["the left button beside a box draws another", press(LEFT, CONTEXT_WITH_BOX), "draw"],
    ["the left button in a box takes hold of it", press(LEFT, CONTEXT_WITH_BOX, { at: INSIDE }), "edit"],
    ["the left button moves the film with that tool", press(LEFT, withTool("pan")), "pan"],
    ["the left button turns greys with that tool", press(LEFT, withTool("windowLevel")), "windowLevel"],
    ["the middle button moves the film", press(MIDDLE, CONTEXT), "pan"],
    ["the middle button moves the film with any tool", press(MIDDLE, withTool("windowLevel")), "pan"],
    ["the right button turns greys", press(RIGHT, CONTEXT), "windowLevel"],
    ["the right button turns greys with any tool", press(RIGHT, withTool("pan")), "windowLevel"],
    ["the right button in a box turns greys", press(RIGHT, CONTEXT_WITH_BOX, { at: INSIDE }), "windowLevel"],
    ["space and the left button move the film", press(LEFT, CONTEXT, { panning: true }), "pan"],
    [
      "space moves the film even over a box",
      press(LEFT, CONTEXT_WITH_BOX, { at: INSIDE, panning: true }),
      "pan",
    ],
  ];
  test.each(begins)("%s", (_, gesture, kind) => {
    expect(gesture.kind).toBe(kind);
  });

  test("a corner is found within nine screen pixels, however large the film is shown", () => {
    const far = { ...CONTEXT_WITH_BOX, view: { scale: 0.1, x: 0, y: 0 } };
    expect(press(LEFT, far, { at: { x: 88, y: 68 } })).toMatchObject({
      grip: { horizontal: "x2", vertical: "y2" },
    });
    expect(press(LEFT, far, { at: { x: 90, y: 60 } }).kind).toBe("draw");
    const near = { ...CONTEXT_WITH_BOX, view: { scale: 4, x: 0, y: 0 } };
    expect(press(LEFT, near, { at: { x: 3208, y: 2408 } })).toMatchObject({ kind: "edit" });
    expect(press(LEFT, near, { at: { x: 3210, y: 2400 } }).kind).toBe("draw");
  });
});

describe("what a drag does", () => {
  test("drawing makes a box in film pixels, cut at the film's edge", () => {
    const gesture = press(LEFT, CONTEXT, { at: { x: 800, y: 700 } });
    expect(applyGesture(gesture, { x: 1200, y: 750 }, CONTEXT)).toEqual({
      box: { x1: 1600, y1: 1400, x2: 2000, y2: 1500 },
    });
  });

  test("a box held inside moves with the pointer, in film pixels", () => {
    const gesture = press(LEFT, CONTEXT_WITH_BOX, { at: INSIDE });
    const at = { x: INSIDE.x + 10, y: INSIDE.y - 5 };
    expect(applyGesture(gesture, at, CONTEXT_WITH_BOX)).toEqual({
      box: { x1: 420, y1: 390, x2: 820, y2: 590 },
    });
  });

  test("a box held at a corner changes its size", () => {
    const gesture = press(LEFT, CONTEXT_WITH_BOX, { at: CORNER });
    const at = { x: CORNER.x + 50, y: CORNER.y + 25 };
    expect(applyGesture(gesture, at, CONTEXT_WITH_BOX)).toEqual({ box: { ...CAVITY, x2: 900, y2: 650 } });
  });

  test("every move counts from where the drag began, so a drag back changes nothing", () => {
    const gesture = press(LEFT, CONTEXT_WITH_BOX, { at: INSIDE });
    const moved = applyGesture(gesture, { x: 777, y: 13 }, CONTEXT_WITH_BOX);
    expect(moved).not.toEqual({ box: CAVITY });
    const context = "box" in moved ? { ...CONTEXT_WITH_BOX, editable: moved.box } : CONTEXT_WITH_BOX;
    expect(applyGesture(gesture, INSIDE, context)).toEqual({ box: CAVITY });
  });

  test("panning moves the film with the pointer", () => {
    const gesture = press(MIDDLE, CONTEXT, { at: { x: 100, y: 100 } });
    const effect = applyGesture(gesture, { x: 130, y: 60 }, CONTEXT);
    expect(effect).toEqual({ view: { ...CONTEXT.view, x: 30, y: -40 } });
  });

  test("window and level change by fractions of the viewport, the same on every screen", () => {
    const gesture = press(RIGHT, CONTEXT, { at: { x: 500, y: 500 } });
    const small = applyGesture(gesture, { x: 500, y: 600 }, CONTEXT);
    const large = applyGesture(
      gesture,
      { x: 500, y: 700 },
      { ...CONTEXT, viewport: { width: 2000, height: 2000 } },
    );
    expect(small).toEqual({ windowLevel: { ...FULL_RANGE, centre: 0.4 } });
    expect(large).toEqual(small);
  });
});

describe("two fingers", () => {
  const pinch = startPinch({ x: 400, y: 500 }, { x: 600, y: 500 }, CONTEXT.view) as Gesture & {
    kind: "pinch";
  };

  test("twice the distance doubles the scale around the point between them", () => {
    const view = applyPinch(
      pinch,
      [
        { x: 300, y: 500 },
        { x: 700, y: 500 },
      ],
      CONTEXT,
    );
    const middle = { x: 500, y: 500 };
    expect(view.scale).toBe(2 * CONTEXT.view.scale);
    expect(toFilm(view, middle)).toEqual(toFilm(CONTEXT.view, middle));
  });

  test("moving both pans the film", () => {
    const view = applyPinch(
      pinch,
      [
        { x: 450, y: 530 },
        { x: 650, y: 530 },
      ],
      CONTEXT,
    );
    expect(view).toEqual({ ...CONTEXT.view, x: CONTEXT.view.x + 50, y: CONTEXT.view.y + 30 });
  });

  test("two fingers on the same spot give a finite view", () => {
    const spot = { x: 500, y: 500 };
    const narrow = startPinch(spot, spot, CONTEXT.view) as Gesture & { kind: "pinch" };
    const view = applyPinch(narrow, [spot, { x: 501, y: 500 }], CONTEXT);
    expect(Object.values(view).every(Number.isFinite)).toBe(true);
  });
});

describe("the cursor", () => {
  const looks: [string, { x: number; y: number }, string][] = [
    ["upper left corner", { x: 200, y: 200 }, "nwse-resize"],
    ["lower right corner", { x: 400, y: 300 }, "nwse-resize"],
    ["upper right corner", { x: 400, y: 200 }, "nesw-resize"],
    ["lower left corner", { x: 200, y: 300 }, "nesw-resize"],
    ["left edge", { x: 200, y: 250 }, "ew-resize"],
    ["upper edge", { x: 300, y: 200 }, "ns-resize"],
    ["inside", INSIDE, "move"],
    ["rest of the film", BESIDE, "crosshair"],
  ];
  test.each(looks)("over a box's %s it says what would happen there", (_, at, look) => {
    expect(cursorAt(at, CONTEXT_WITH_BOX, false)).toBe(look);
  });

  test("a tool keeps its cursor over a box", () => {
    expect(cursorAt(INSIDE, { ...CONTEXT_WITH_BOX, tool: "pan" }, false)).toBe("grab");
    expect(cursorAt(INSIDE, { ...CONTEXT_WITH_BOX, tool: "windowLevel" }, false)).toBe("ns-resize");
    expect(cursorAt(INSIDE, CONTEXT_WITH_BOX, true)).toBe("grab");
  });
});

describe("arrow keys", () => {
  test("move a box by a step", () => {
    expect(nudgeBox(CAVITY, "ArrowLeft", 20, false, FILM)).toEqual({ ...CAVITY, x1: 380, x2: 780 });
    expect(nudgeBox(CAVITY, "ArrowRight", 20, false, FILM)).toEqual({ ...CAVITY, x1: 420, x2: 820 });
    expect(nudgeBox(CAVITY, "ArrowUp", 20, false, FILM)).toEqual({ ...CAVITY, y1: 380, y2: 580 });
    expect(nudgeBox(CAVITY, "ArrowDown", 20, false, FILM)).toEqual({ ...CAVITY, y1: 420, y2: 620 });
  });

  test("with Shift they move its right and its lower edge only", () => {
    expect(nudgeBox(CAVITY, "ArrowRight", 20, true, FILM)).toEqual({ ...CAVITY, x2: 820 });
    expect(nudgeBox(CAVITY, "ArrowLeft", 20, true, FILM)).toEqual({ ...CAVITY, x2: 780 });
    expect(nudgeBox(CAVITY, "ArrowDown", 20, true, FILM)).toEqual({ ...CAVITY, y2: 620 });
    expect(nudgeBox(CAVITY, "ArrowUp", 20, true, FILM)).toEqual({ ...CAVITY, y2: 580 });
  });

  test("never push a box off the film", () => {
    expect(nudgeBox({ ...CAVITY, x1: 5, x2: 405 }, "ArrowLeft", 20, false, FILM)).toEqual({
      ...CAVITY,
      x1: 0,
      x2: 400,
    });
  });

  test("any other key leaves it where it is", () => {
    expect(nudgeBox(CAVITY, "Home", 20, false, FILM)).toEqual(CAVITY);
    expect(nudgeBox(CAVITY, "Home", 20, true, FILM)).toEqual(CAVITY);
  });
});
