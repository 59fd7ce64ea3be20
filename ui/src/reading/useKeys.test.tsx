import { cleanup, fireEvent, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { PLAIN } from "../film/greys";
import { settings } from "../settings/settings";
import { CAVITY_BOX, explanation, freshBrowser, readingOf, seen, watchedActs } from "../test/scene";
import { createDesk, type Edit } from "../film/desk";
import { useKeys } from "./useKeys";

const SIZE = { width: 2000, height: 1600 };
const ROOM = { width: 1000, height: 800 };
const EDIT: Edit = { box: CAVITY_BOX, concept: "cavity", positive: true, number: null, moving: false };

function atKeys(size = SIZE) {
  const keyboard = {
    desk: createDesk("f1"),
    reading: readingOf({
      explanation: explanation([seen("effusion", "Pleural effusion"), seen("cavity", "Cavity")]),
    }),
    acts: watchedActs(),
    size,
    room: () => ROOM,
    zoom: vi.fn(),
    turn: vi.fn(),
    onKeys: vi.fn(),
    onTeach: vi.fn(),
    onExample: vi.fn(),
  };
  const { unmount } = renderHook(() => useKeys(keyboard));
  return { ...keyboard, unmount };
}

/** Press a key; whether the page took it for itself. */
const press = (key: string, more: KeyboardEventInit = {}, on: Element = document.body): boolean =>
  !fireEvent.keyDown(on, { key, ...more });

function place<K extends keyof HTMLElementTagNameMap>(tag: K): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  document.body.append(element);
  return element;
}

beforeEach(() => freshBrowser());
afterEach(() => {
  cleanup();
  document.body.replaceChildren();
});

describe("single letters", () => {
  test("do what the list of keys says", () => {
    const { desk, acts, zoom, onKeys, onTeach } = atKeys();
    desk.choice.set((now) => ({ ...now, concept: "cavity" }));
    for (const key of ["b", "x", "z", "y", "[", "]", "+", "-", "?", "t"]) press(key);
    expect(acts.place).toHaveBeenCalledWith({ x1: 800, y1: 640, x2: 1200, y2: 960 });
    expect(acts.toggleRejection).toHaveBeenCalledWith("cavity");
    expect(acts.undo).toHaveBeenCalledOnce();
    expect(acts.redo).toHaveBeenCalledOnce();
    expect(acts.lookBack.mock.calls).toEqual([[-1], [1]]);
    expect(zoom.mock.calls).toEqual([[1.25], [0.8]]);
    expect(onKeys).toHaveBeenCalledOnce();
    expect(onTeach).toHaveBeenCalledOnce();
  });

  test("turn what lies on the desk: tool, greys, size and map", () => {
    const { desk } = atKeys();
    press("w");
    expect(desk.tool.get()).toBe("greys");
    press("I");
    expect(desk.greys.get().inverted).toBe(true);
    press("m");
    press("d");
    press(".");
    expect(desk.choice.get()).toMatchObject({ pinned: false, kind: "disagreement", opacity: 1 });
    desk.view.set({ scale: 3, x: 0, y: 0 });
    press("r");
    expect([desk.greys.get(), desk.view.get()]).toEqual([PLAIN, null]);
  });

  test("choose findings by their place in the list", () => {
    const { acts } = atKeys();
    press("2");
    press("9");
    expect(acts.choose.mock.calls).toEqual([["cavity"]]);
  });

  test("say whether a finding is here or not here, once there is a box", () => {
    const { desk } = atKeys();
    press("n");
    expect(desk.edit.get()).toBeNull();
    desk.edit.set(EDIT);
    press("n");
    expect(desk.edit.get()?.positive).toBe(false);
  });

  test("do nothing when they are switched off; other keys still work", () => {
    settings.set((now) => ({ ...now, keys: false }));
    const { desk, acts, turn } = atKeys();
    for (const key of ["b", "x", "z", "i", "1", "w"]) expect(press(key), key).toBe(false);
    expect(acts.place).not.toHaveBeenCalled();
    expect(acts.undo).not.toHaveBeenCalled();
    expect([desk.tool.get(), desk.greys.get()]).toEqual(["draw", PLAIN]);
    press("Escape");
    press("PageDown");
    press("z", { ctrlKey: true });
    expect(acts.discard).toHaveBeenCalledOnce();
    expect(turn).toHaveBeenCalledWith(1);
    expect(acts.undo).toHaveBeenCalledOnce();
  });
});

describe("keys that are not the page's", () => {
  test.each(["textarea", "input", "select"] as const)("are those typed into a %s", (tag) => {
    const { desk, acts } = atKeys();
    desk.edit.set(EDIT);
    const field = place(tag);
    for (const key of ["b", "x", "Enter", "Escape", "Backspace", "ArrowLeft"])
      expect(press(key, {}, field), key).toBe(false);
    expect(press("z", { ctrlKey: true }, field)).toBe(false);
    for (const act of Object.values(acts)) expect(act).not.toHaveBeenCalled();
    expect(desk.edit.get()).toEqual(EDIT);
  });

  test("are all while a dialog is open", () => {
    const { acts } = atKeys();
    place("dialog").setAttribute("open", "");
    press("b");
    press("Escape");
    expect(acts.place).not.toHaveBeenCalled();
    expect(acts.discard).not.toHaveBeenCalled();
  });

  test("are those that the browser has for itself", () => {
    const { acts, desk } = atKeys();
    for (const key of ["b", "r", "w", "+", "f"]) expect(press(key, { ctrlKey: true }), key).toBe(false);
    expect(press("ArrowLeft", { altKey: true })).toBe(false);
    expect(acts.place).not.toHaveBeenCalled();
    expect([desk.tool.get(), desk.view.get()]).toEqual(["draw", null]);
  });

  test("are those that something else took already", () => {
    const { acts } = atKeys();
    const own = place("div");
    own.addEventListener("keydown", (event) => event.preventDefault());
    press("b", {}, own);
    expect(acts.place).not.toHaveBeenCalled();
  });

  test("are all once the screen was left", () => {
    const { acts, unmount } = atKeys();
    unmount();
    press("b");
    expect(acts.place).not.toHaveBeenCalled();
  });
});

describe("Enter", () => {
  test("applies the box, and nothing where there is none", () => {
    const { desk, acts } = atKeys();
    expect(press("Enter")).toBe(false);
    expect(acts.apply).not.toHaveBeenCalled();
    desk.edit.set(EDIT);
    press("Enter");
    expect(acts.apply).toHaveBeenCalledOnce();
  });

  test.each(["button", "a", "summary"] as const)("on a %s presses that, and applies nothing", (tag) => {
    const { desk, acts } = atKeys();
    desk.edit.set(EDIT);
    expect(press("Enter", {}, place(tag))).toBe(false);
    expect(acts.apply).not.toHaveBeenCalled();
  });

  test("makes the box an example while a finding is taught", () => {
    const { desk, acts, onExample } = atKeys();
    desk.teaching.set(true);
    desk.edit.set(EDIT);
    press("Enter");
    expect(onExample).toHaveBeenCalledOnce();
    expect(acts.apply).not.toHaveBeenCalled();
  });
});

describe("undo and redo", () => {
  test("are also where everybody expects them", () => {
    const { acts } = atKeys();
    expect(press("z", { ctrlKey: true })).toBe(true);
    press("z", { metaKey: true });
    expect([acts.undo.mock.calls.length, acts.redo.mock.calls.length]).toEqual([2, 0]);
    press("Z", { ctrlKey: true, shiftKey: true });
    press("y", { ctrlKey: true });
    expect([acts.undo.mock.calls.length, acts.redo.mock.calls.length]).toEqual([2, 2]);
  });
});

describe("Delete", () => {
  test("removes the box in hand, and does nothing without one", () => {
    const { desk, acts } = atKeys();
    expect(press("Delete")).toBe(false);
    desk.edit.set(EDIT);
    press("Delete");
    expect(acts.remove).toHaveBeenCalledOnce();
  });
});

describe("arrows", () => {
  test("move the box by a hundredth of the film, with Shift they change its size", () => {
    const { desk } = atKeys();
    desk.edit.set(EDIT);
    press("ArrowRight");
    expect(desk.edit.get()?.box).toEqual({ ...CAVITY_BOX, x1: 420, x2: 620 });
    press("ArrowDown", { shiftKey: true });
    expect(desk.edit.get()?.box).toEqual({ ...CAVITY_BOX, x1: 420, x2: 620, y2: 470 });
  });

  test("leave figures that read well in a log", () => {
    const { desk } = atKeys({ width: 1237, height: 1021 });
    desk.edit.set({ ...EDIT, box: { x1: 0.1, y1: 0.1, x2: 100.7, y2: 50.3 } });
    for (let time = 0; time < 7; time++) press("ArrowRight", { shiftKey: time % 2 === 0 });
    for (const edge of Object.values(desk.edit.get()?.box ?? {}))
      expect(String(edge)).toMatch(/^\d+(\.\d)?$/);
  });

  test("without a box move the film, so that one sees more of that side", () => {
    const { desk } = atKeys();
    press("ArrowRight");
    press("ArrowDown");
    expect(desk.view.get()).toEqual({ scale: 0.5, x: -40, y: -40 });
  });

  test("on a button are left to it", () => {
    const { desk } = atKeys();
    expect(press("ArrowRight", {}, place("button"))).toBe(false);
    expect(desk.view.get()).toBeNull();
  });
});
