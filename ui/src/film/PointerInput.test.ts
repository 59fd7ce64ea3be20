import { fireEvent } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Box } from "./box";
import type { FilmViewProps } from "./FilmView";
import { PointerInput } from "./PointerInput";
import { createViewerState, type ViewerState } from "./viewerState";

const FILM = { width: 1000, height: 1000 };
const CAVITY: Box = { x1: 200, y1: 200, x2: 400, y2: 400 };

let element: HTMLDivElement;
let viewer: ViewerState;
let pointerInput: PointerInput;
const onPick = vi.fn();

/** As on the reading screen: a drawn box becomes the draft. */
function onDraw(box: Box, done: boolean): void {
  viewer.draft.set({ box, concept: "cavity", positive: true, correctionIndex: null, moving: !done });
}

// A viewport as large as the film: screen pixels are film pixels.
beforeEach(() => {
  window.sessionStorage.clear();
  element = document.createElement("div");
  element.setPointerCapture = () => undefined;
  Object.defineProperties(element, { clientWidth: { value: 1000 }, clientHeight: { value: 1000 } });
  document.body.append(element);
  viewer = createViewerState("f1");
  pointerInput = new PointerInput(
    element,
    viewer,
    FILM,
    () => ({ onDraw, onPick }) as unknown as FilmViewProps,
  );
});

afterEach(() => {
  pointerInput.dispose();
  element.remove();
  onPick.mockReset();
});

type Kind = "pointerDown" | "pointerMove" | "pointerUp";
const point = (kind: Kind, x: number, y: number, pointerId = 1) =>
  fireEvent[kind](element, { clientX: x, clientY: y, pointerId, button: 0 });

describe("drawing", () => {
  test("a box is marked as moving until the pointer is released", () => {
    point("pointerDown", 100, 100);
    point("pointerMove", 300, 250);
    expect(viewer.draft.get()).toMatchObject({ box: { x1: 100, y1: 100, x2: 300, y2: 250 }, moving: true });
    point("pointerUp", 300, 250);
    expect(viewer.draft.get()).toMatchObject({ box: { x1: 100, y1: 100, x2: 300, y2: 250 }, moving: false });
  });

  test("a movement of less than four pixels is a click and draws nothing", () => {
    point("pointerDown", 100, 100);
    point("pointerMove", 102, 102);
    point("pointerUp", 102, 102);
    expect(viewer.draft.get()).toBeNull();
    expect(onPick).toHaveBeenCalledWith(102, 102);
  });

  test("a second finger starts a pinch and discards the box drawn by the first", () => {
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

describe("an existing box", () => {
  beforeEach(() => onDraw(CAVITY, true));

  test("is no longer marked as moving after the pointer is released", () => {
    point("pointerDown", 300, 300);
    point("pointerMove", 350, 310);
    point("pointerUp", 350, 310);
    expect(viewer.draft.get()).toMatchObject({ box: { x1: 250, y1: 210, x2: 450, y2: 410 }, moving: false });
  });

  test("is restored when it was made too small", () => {
    point("pointerDown", 400, 300);
    point("pointerMove", 201, 300);
    point("pointerUp", 201, 300);
    expect(viewer.draft.get()).toMatchObject({ box: CAVITY, moving: false });
  });

  test("is restored when a second finger touches the film", () => {
    point("pointerDown", 300, 300);
    point("pointerMove", 350, 310);
    point("pointerDown", 700, 700, 2);
    expect(viewer.draft.get()).toMatchObject({ box: CAVITY, moving: false });
  });
});

test("the wheel zooms at the pointer and does not scroll the page", () => {
  const scrolled = fireEvent.wheel(element, { clientX: 0, clientY: 0, deltaY: -400 });
  expect(scrolled).toBe(false);
  expect(viewer.view.get()?.scale).toBeGreaterThan(1);
  expect(viewer.view.get()).toMatchObject({ x: 0, y: 0 });
});

test("after dispose, pointer events do nothing", () => {
  pointerInput.dispose();
  point("pointerDown", 100, 100);
  point("pointerMove", 300, 250);
  expect(viewer.draft.get()).toBeNull();
});
