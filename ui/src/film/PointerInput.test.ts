import { fireEvent } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { createViewerState, type ViewerState } from "./viewerState";
import type { Box } from "./box";
import type { FilmViewProps } from "./FilmView";
import { PointerInput } from "./PointerInput";

const FILM = { width: 1000, height: 1000 };
const CAVITY: Box = { x1: 200, y1: 200, x2: 400, y2: 400 };

let room: HTMLDivElement;
let viewer: ViewerState;
let hand: PointerInput;
const onPick = vi.fn();

/** As the light box has it: what is drawn lies on the desk, at rest or not. */
function onDraw(box: Box, done: boolean): void {
  viewer.draft.set({ box, concept: "cavity", positive: true, correctionIndex: null, moving: !done });
}

// A room as large as the film: screen pixels are film pixels.
beforeEach(() => {
  window.sessionStorage.clear();
  room = document.createElement("div");
  room.setPointerCapture = () => undefined;
  Object.defineProperties(room, { clientWidth: { value: 1000 }, clientHeight: { value: 1000 } });
  document.body.append(room);
  viewer = createViewerState("f1");
  hand = new PointerInput(room, viewer, FILM, () => ({ onDraw, onPick }) as unknown as FilmViewProps);
});

afterEach(() => {
  hand.dispose();
  room.remove();
  onPick.mockReset();
});

type Kind = "pointerDown" | "pointerMove" | "pointerUp";
const point = (kind: Kind, x: number, y: number, pointerId = 1) =>
  fireEvent[kind](room, { clientX: x, clientY: y, pointerId, button: 0 });

describe("drawing", () => {
  test("a box is on its way until the hand lets go", () => {
    point("pointerDown", 100, 100);
    point("pointerMove", 300, 250);
    expect(viewer.draft.get()).toMatchObject({ box: { x1: 100, y1: 100, x2: 300, y2: 250 }, moving: true });
    point("pointerUp", 300, 250);
    expect(viewer.draft.get()).toMatchObject({ box: { x1: 100, y1: 100, x2: 300, y2: 250 }, moving: false });
  });

  test("a hand that trembles by less than four pixels clicks and draws nothing", () => {
    point("pointerDown", 100, 100);
    point("pointerMove", 102, 102);
    point("pointerUp", 102, 102);
    expect(viewer.draft.get()).toBeNull();
    expect(onPick).toHaveBeenCalledWith(102, 102);
  });

  test("a second finger pinches, and what the first one drew meanwhile is gone", () => {
    point("pointerDown", 100, 100);
    point("pointerMove", 110, 110);
    point("pointerDown", 600, 600, 2);
    expect(viewer.draft.get()).toBeNull();
    point("pointerMove", 900, 900, 2);
    expect(viewer.view.get()?.scale).toBeGreaterThan(1);
    point("pointerUp", 900, 900, 2);
    point("pointerUp", 110, 110);
    expect(viewer.draft.get()).toBeNull();
  });
});

describe("a box that lies there", () => {
  beforeEach(() => onDraw(CAVITY, true));

  test("is at rest again after it was moved", () => {
    point("pointerDown", 300, 300);
    point("pointerMove", 350, 310);
    point("pointerUp", 350, 310);
    expect(viewer.draft.get()).toMatchObject({ box: { x1: 250, y1: 210, x2: 450, y2: 410 }, moving: false });
  });

  test("is as before, and at rest, when it was made too small to be one", () => {
    point("pointerDown", 400, 300);
    point("pointerMove", 201, 300);
    point("pointerUp", 201, 300);
    expect(viewer.draft.get()).toMatchObject({ box: CAVITY, moving: false });
  });

  test("is as before, and at rest, when a second finger came while it was moved", () => {
    point("pointerDown", 300, 300);
    point("pointerMove", 350, 310);
    point("pointerDown", 700, 700, 2);
    expect(viewer.draft.get()).toMatchObject({ box: CAVITY, moving: false });
  });
});

test("the wheel enlarges what lies under the pointer, and does not scroll the page", () => {
  const scrolled = fireEvent.wheel(room, { clientX: 0, clientY: 0, deltaY: -400 });
  expect(scrolled).toBe(false);
  expect(viewer.view.get()?.scale).toBeGreaterThan(1);
  expect(viewer.view.get()).toMatchObject({ x: 0, y: 0 });
});

test("a hand that let go does nothing any more", () => {
  hand.dispose();
  point("pointerDown", 100, 100);
  point("pointerMove", 300, 250);
  expect(viewer.draft.get()).toBeNull();
});
