import { cleanup, fireEvent, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { type BoxDraft, createViewerState } from "../film/viewerState";
import { FULL_RANGE } from "../film/windowLevel";
import { settings } from "../settings/settings";
import {
  CAVITY_BOX,
  conceptSeen,
  explanation,
  mockActions,
  resetBrowser,
  studyDataOf,
} from "../test/fixtures";
import { useShortcuts } from "./useShortcuts";

const SIZE = { width: 2000, height: 1600 };
const VIEWPORT = { width: 1000, height: 800 };
const DRAFT: BoxDraft = {
  box: CAVITY_BOX,
  concept: "cavity",
  positive: true,
  correctionIndex: null,
  moving: false,
};

function withShortcuts(filmSize = SIZE) {
  const targets = {
    viewer: createViewerState("f1"),
    studyData: studyDataOf({
      explanation: explanation([
        conceptSeen("effusion", "Pleural effusion"),
        conceptSeen("cavity", "Cavity"),
      ]),
    }),
    actions: mockActions(),
    filmSize,
    viewport: () => VIEWPORT,
    zoom: vi.fn(),
    goToFilm: vi.fn(),
    onHelp: vi.fn(),
    onTeach: vi.fn(),
    onExample: vi.fn(),
  };
  const { unmount } = renderHook(() => useShortcuts(targets));
  return { ...targets, unmount };
}

/** Press a key; returns whether the page handled it. */
const press = (key: string, more: KeyboardEventInit = {}, on: Element = document.body): boolean =>
  !fireEvent.keyDown(on, { key, ...more });

function place<K extends keyof HTMLElementTagNameMap>(tag: K): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  document.body.append(element);
  return element;
}

beforeEach(() => resetBrowser());
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

describe("single letters", () => {
  test("do what the list of shortcuts says", () => {
    const { viewer, actions, zoom, onHelp, onTeach } = withShortcuts();
    viewer.selection.set((current) => ({ ...current, concept: "cavity" }));
    for (const key of ["b", "x", "z", "y", "[", "]", "+", "-", "?", "t"]) press(key);
    expect(actions.placeBox).toHaveBeenCalledWith({ x1: 800, y1: 640, x2: 1200, y2: 960 });
    expect(actions.toggleRejection).toHaveBeenCalledWith("cavity");
    expect(actions.undo).toHaveBeenCalledOnce();
    expect(actions.redo).toHaveBeenCalledOnce();
    expect(actions.moveInHistory.mock.calls).toEqual([[-1], [1]]);
    expect(zoom.mock.calls).toEqual([[1.25], [0.8]]);
    expect(onHelp).toHaveBeenCalledOnce();
    expect(onTeach).toHaveBeenCalledOnce();
  });

  test("change tool, window, zoom and map", () => {
    const { viewer } = withShortcuts();
    press("w");
    expect(viewer.tool.get()).toBe("windowLevel");
    press("I");
    expect(viewer.windowLevel.get().inverted).toBe(true);
    press("m");
    press("d");
    press(".");
    expect(viewer.selection.get()).toMatchObject({ pinned: false, kind: "disagreement", opacity: 1 });
    viewer.view.set({ scale: 3, x: 0, y: 0 });
    press("r");
    expect([viewer.windowLevel.get(), viewer.view.get()]).toEqual([FULL_RANGE, null]);
  });

  test("select findings by their position in the list", () => {
    const { actions } = withShortcuts();
    press("2");
    press("9");
    expect(actions.chooseFinding.mock.calls).toEqual([["cavity"]]);
  });

  test("switch between here and not here, if there is a box", () => {
    const { viewer } = withShortcuts();
    press("n");
    expect(viewer.draft.get()).toBeNull();
    viewer.draft.set(DRAFT);
    press("n");
    expect(viewer.draft.get()?.positive).toBe(false);
  });

  test("do nothing when they are switched off; other keys still work", () => {
    settings.set((current) => ({ ...current, keys: false }));
    const { viewer, actions, goToFilm } = withShortcuts();
    for (const key of ["b", "x", "z", "i", "1", "w"]) expect(press(key), key).toBe(false);
    expect(actions.placeBox).not.toHaveBeenCalled();
    expect(actions.undo).not.toHaveBeenCalled();
    expect([viewer.tool.get(), viewer.windowLevel.get()]).toEqual(["draw", FULL_RANGE]);
    press("Escape");
    press("PageDown");
    press("z", { ctrlKey: true });
    expect(actions.discardDraft).toHaveBeenCalledOnce();
    expect(goToFilm).toHaveBeenCalledWith(1);
    expect(actions.undo).toHaveBeenCalledOnce();
  });
});

describe("keys that are no shortcuts", () => {
  test.each(["textarea", "input", "select"] as const)("are keys typed into a %s", (tag) => {
    const { viewer, actions } = withShortcuts();
    viewer.draft.set(DRAFT);
    const field = place(tag);
    for (const key of ["b", "x", "Enter", "Escape", "Backspace", "ArrowLeft"])
      expect(press(key, {}, field), key).toBe(false);
    expect(press("z", { ctrlKey: true }, field)).toBe(false);
    for (const act of Object.values(actions)) expect(act).not.toHaveBeenCalled();
    expect(viewer.draft.get()).toEqual(DRAFT);
  });

  test("are all keys while a dialog is open", () => {
    const { actions } = withShortcuts();
    place("dialog").setAttribute("open", "");
    press("b");
    press("Escape");
    expect(actions.placeBox).not.toHaveBeenCalled();
    expect(actions.discardDraft).not.toHaveBeenCalled();
  });

  test("are the browser's own shortcuts", () => {
    const { actions, viewer } = withShortcuts();
    for (const key of ["b", "r", "w", "+", "f"]) expect(press(key, { ctrlKey: true }), key).toBe(false);
    expect(press("ArrowLeft", { altKey: true })).toBe(false);
    expect(actions.placeBox).not.toHaveBeenCalled();
    expect([viewer.tool.get(), viewer.view.get()]).toEqual(["draw", null]);
  });

  test("are keys that another handler has used", () => {
    const { actions } = withShortcuts();
    const own = place("div");
    own.addEventListener("keydown", (event) => event.preventDefault());
    press("b", {}, own);
    expect(actions.placeBox).not.toHaveBeenCalled();
  });

  test("are all keys after the screen was closed", () => {
    const { actions, unmount } = withShortcuts();
    unmount();
    press("b");
    expect(actions.placeBox).not.toHaveBeenCalled();
  });
});

describe("Enter", () => {
  test("applies the box, if there is one", () => {
    const { viewer, actions } = withShortcuts();
    expect(press("Enter")).toBe(false);
    expect(actions.applyDraft).not.toHaveBeenCalled();
    viewer.draft.set(DRAFT);
    press("Enter");
    expect(actions.applyDraft).toHaveBeenCalledOnce();
  });

  test.each(["button", "a", "summary"] as const)("on a %s presses that, and applies nothing", (tag) => {
    const { viewer, actions } = withShortcuts();
    viewer.draft.set(DRAFT);
    expect(press("Enter", {}, place(tag))).toBe(false);
    expect(actions.applyDraft).not.toHaveBeenCalled();
  });

  test("makes the box an example while a finding is taught", () => {
    const { viewer, actions, onExample } = withShortcuts();
    viewer.teaching.set(true);
    viewer.draft.set(DRAFT);
    press("Enter");
    expect(onExample).toHaveBeenCalledOnce();
    expect(actions.applyDraft).not.toHaveBeenCalled();
  });
});

describe("undo and redo", () => {
  test("also work with Ctrl or Cmd", () => {
    const { actions } = withShortcuts();
    expect(press("z", { ctrlKey: true })).toBe(true);
    press("z", { metaKey: true });
    expect([actions.undo.mock.calls.length, actions.redo.mock.calls.length]).toEqual([2, 0]);
    press("Z", { ctrlKey: true, shiftKey: true });
    press("y", { ctrlKey: true });
    expect([actions.undo.mock.calls.length, actions.redo.mock.calls.length]).toEqual([2, 2]);
  });
});

describe("Delete", () => {
  test("removes the current box, if there is one", () => {
    const { viewer, actions } = withShortcuts();
    expect(press("Delete")).toBe(false);
    viewer.draft.set(DRAFT);
    press("Delete");
    expect(actions.removeBox).toHaveBeenCalledOnce();
  });
});

describe("arrows", () => {
  test("move the box by a hundredth of the film, with Shift they change its size", () => {
    const { viewer } = withShortcuts();
    viewer.draft.set(DRAFT);
    press("ArrowRight");
    expect(viewer.draft.get()?.box).toEqual({ ...CAVITY_BOX, x1: 420, x2: 620 });
    press("ArrowDown", { shiftKey: true });
    expect(viewer.draft.get()?.box).toEqual({ ...CAVITY_BOX, x1: 420, x2: 620, y2: 470 });
  });

  test("keep coordinates at tenths of a pixel", () => {
    const { viewer } = withShortcuts({ width: 1237, height: 1021 });
    viewer.draft.set({ ...DRAFT, box: { x1: 0.1, y1: 0.1, x2: 100.7, y2: 50.3 } });
    for (let time = 0; time < 7; time++) press("ArrowRight", { shiftKey: time % 2 === 0 });
    for (const edge of Object.values(viewer.draft.get()?.box ?? {}))
      expect(String(edge)).toMatch(/^\d+(\.\d)?$/);
  });

  test("pan the film if there is no box", () => {
    const { viewer } = withShortcuts();
    press("ArrowRight");
    press("ArrowDown");
    expect(viewer.view.get()).toEqual({ scale: 0.5, x: -40, y: -40 });
  });

  test("do nothing on a focused button", () => {
    const { viewer } = withShortcuts();
    expect(press("ArrowRight", {}, place("button"))).toBe(false);
    expect(viewer.view.get()).toBeNull();
  });
});
