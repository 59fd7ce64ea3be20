/** Keys for everything. Single letters can be switched off, for whoever dictates or types by other means. */
import { useEffect } from "react";

import { middling, rounded } from "../film/box";
import { ARROWS, nudged } from "../film/gestures";
import { PLAIN } from "../film/greys";
import { clamp, panned, type Size, fitted } from "../film/view";
import { settings } from "../settings/settings";
import type { Desk } from "../film/desk";
import type { Acts } from "./sitting";
import type { Reading } from "./useReading";

export interface Keyboard {
  desk: Desk;
  reading: Reading;
  acts: Acts;
  size: Size;
  room: () => Size;
  zoom: (factor: number) => void;
  turn: (by: 1 | -1) => void;
  onKeys: () => void;
  onTeach: () => void;
  onExample: () => void;
}

const STEP = 0.01;
const STEPWISE = new Set(["+", "=", "-", ",", ".", "[", "]"]);

export function useKeys(keyboard: Keyboard | null): void {
  useEffect(() => {
    if (!keyboard) return;
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || isTyping(event.target)) return;
      const act = actFor(event, keyboard);
      if (!act) return;
      event.preventDefault();
      act();
    };
    window.addEventListener("keydown", listen);
    return () => window.removeEventListener("keydown", listen);
  }, [keyboard]);
}

/** Somebody writes, or chooses from a list, or a dialog is open: their keys are theirs. */
function isTyping(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]")) return true;
  return target instanceof HTMLElement && target.closest("input, textarea, select") !== null;
}

type Act = (() => void) | null;

function actFor(event: KeyboardEvent, keyboard: Keyboard): Act {
  // A key that is held down moves on, but says nothing twice.
  if (event.repeat && !(event.key in ARROWS) && !STEPWISE.has(event.key)) return null;
  // Some keyboards write brackets with AltGr, which counts as Ctrl and Alt.
  const written = event.getModifierState("AltGraph");
  if (!written && (event.ctrlKey || event.metaKey)) return withControl(event, keyboard);
  if (!written && event.altKey) return null;
  return named(event, keyboard) ?? (settings.get().keys ? lettered(event.key.toLowerCase(), keyboard) : null);
}

function withControl(event: KeyboardEvent, { acts }: Keyboard): Act {
  if (event.key.toLowerCase() === "z") return event.shiftKey ? acts.redo : acts.undo;
  return event.key.toLowerCase() === "y" ? acts.redo : null;
}

function named(event: KeyboardEvent, keyboard: Keyboard): Act {
  const { acts, desk, turn } = keyboard;
  // A button that has the focus is pressed by Enter, as everywhere.
  const onButton = event.target instanceof HTMLElement && event.target.closest("button, a, summary") !== null;
  switch (event.key) {
    case "Enter":
      if (onButton || !desk.edit.get()) return null;
      return desk.teaching.get() ? keyboard.onExample : acts.apply;
    case "Escape":
      return acts.discard;
    case "Delete":
    case "Backspace":
      return desk.edit.get() ? acts.remove : null;
    case "PageUp":
      return () => turn(-1);
    case "PageDown":
      return () => turn(1);
    default:
      return event.key in ARROWS && !onButton ? () => arrow(event, keyboard) : null;
  }
}

function arrow(event: KeyboardEvent, { desk, size, room }: Keyboard): void {
  const edit = desk.edit.get();
  if (edit) {
    const step = STEP * Math.max(size.width, size.height);
    const box = rounded(nudged(edit.box, event.key, step, event.shiftKey, size));
    desk.edit.set({ ...edit, box, byHand: false });
    return;
  }
  const [dx, dy] = ARROWS[event.key] ?? [0, 0];
  const view = desk.view.get() ?? fitted(size, room());
  desk.view.set(panned(view, -dx * 40, -dy * 40, size, room()));
}

function lettered(key: string, keyboard: Keyboard): Act {
  if (/^[1-9]$/.test(key)) return () => nth(Number(key) - 1, keyboard);
  const { desk, acts, zoom } = keyboard;
  const acting: Record<string, () => void> = {
    b: () => acts.place(middling(keyboard.size)),
    x: () => onChosen(desk, acts.toggleRejection),
    n: () => desk.edit.set((edit) => edit && { ...edit, positive: !edit.positive }),
    z: acts.undo,
    y: acts.redo,
    "[": () => acts.lookBack(-1),
    "]": () => acts.lookBack(1),
    m: () => desk.choice.set((now) => ({ ...now, pinned: !now.pinned })),
    d: () => desk.choice.set((now) => ({ ...now, kind: now.kind === "mean" ? "disagreement" : "mean" })),
    ",": () => fade(desk, -0.1),
    ".": () => fade(desk, 0.1),
    v: () => desk.tool.set("draw"),
    h: () => desk.tool.set("pan"),
    w: () => desk.tool.set("greys"),
    i: () => desk.greys.set((now) => ({ ...now, inverted: !now.inverted })),
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    f: () => desk.view.set(null),
    r: () => {
      desk.greys.set(PLAIN);
      desk.view.set(null);
    },
    t: keyboard.onTeach,
    "?": keyboard.onKeys,
  };
  return acting[key] ?? null;
}

function nth(place: number, { reading, acts }: Keyboard): void {
  const found = reading.explanation?.concepts[place];
  if (found) acts.choose(found.name);
}

function onChosen(desk: Desk, act: (concept: string) => void): void {
  const { concept } = desk.choice.get();
  if (concept !== null) act(concept);
}

function fade(desk: Desk, by: number): void {
  desk.choice.set((now) => ({ ...now, opacity: clamp(Math.round((now.opacity + by) * 10) / 10, 0, 1) }));
}
