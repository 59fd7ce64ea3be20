/** Keyboard shortcuts of the reading screen. Single letters can be switched off in the settings. */
import { useEffect } from "react";

import { centredBox, roundBox } from "../film/box";
import { ARROWS, nudgeBox } from "../film/gestures";
import { clamp, fitView, panView, type Size } from "../film/panZoom";
import type { ViewerState } from "../film/viewerState";
import { FULL_RANGE } from "../film/windowLevel";
import { settings } from "../settings/settings";
import type { StudyActions } from "./ReadingContext";
import type { StudyData } from "./useStudyData";

export interface ShortcutTargets {
  viewer: ViewerState;
  studyData: StudyData;
  actions: StudyActions;
  filmSize: Size;
  viewport: () => Size;
  zoom: (factor: number) => void;
  goToFilm: (by: 1 | -1) => void;
  onHelp: () => void;
  onTeach: () => void;
  onExample: () => void;
}

/** Step of the arrow keys, as a share of the film's longer side. */
const ARROW_STEP = 0.01;
/** Screen pixels by which an arrow key moves the film. */
const PAN_STEP = 40;
const REPEATABLE_KEYS = new Set(["+", "=", "-", ",", ".", "[", "]"]);

export function useShortcuts(targets: ShortcutTargets): void {
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.defaultPrevented || belongsElsewhere(event.target)) return;
      const shortcut = shortcutFor(event, targets);
      if (!shortcut) return;
      event.preventDefault();
      shortcut();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [targets]);
}

/** Keys typed into a field, or while a dialog is open, are not shortcuts. */
function belongsElsewhere(target: EventTarget | null): boolean {
  if (document.querySelector("dialog[open]")) return true;
  return target instanceof HTMLElement && target.closest("input, textarea, select") !== null;
}

type Shortcut = (() => void) | null;

function shortcutFor(event: KeyboardEvent, targets: ShortcutTargets): Shortcut {
  // While a key is held down, only keys that move something repeat.
  if (event.repeat && !(event.key in ARROWS) && !REPEATABLE_KEYS.has(event.key)) return null;
  // Some keyboards type brackets with AltGr, which browsers report as Ctrl and Alt.
  const isAltGr = event.getModifierState("AltGraph");
  if (!isAltGr && (event.ctrlKey || event.metaKey)) return controlShortcut(event, targets);
  if (!isAltGr && event.altKey) return null;
  return (
    namedKeyShortcut(event, targets) ??
    (settings.get().keys ? letterShortcut(event.key.toLowerCase(), targets) : null)
  );
}

function controlShortcut(event: KeyboardEvent, { actions }: ShortcutTargets): Shortcut {
  if (event.key.toLowerCase() === "z") return event.shiftKey ? actions.redo : actions.undo;
  return event.key.toLowerCase() === "y" ? actions.redo : null;
}

function namedKeyShortcut(event: KeyboardEvent, targets: ShortcutTargets): Shortcut {
  const { actions, viewer, goToFilm } = targets;
  // A focused button handles Enter and the arrow keys itself.
  const onButton = event.target instanceof HTMLElement && event.target.closest("button, a, summary") !== null;
  switch (event.key) {
    case "Enter":
      if (onButton || !viewer.draft.get()) return null;
      return viewer.teaching.get() ? targets.onExample : actions.applyDraft;
    case "Escape":
      return actions.discardDraft;
    case "Delete":
    case "Backspace":
      return viewer.draft.get() ? actions.removeBox : null;
    case "PageUp":
      return () => goToFilm(-1);
    case "PageDown":
      return () => goToFilm(1);
    default:
      return event.key in ARROWS && !onButton ? () => moveByArrow(event, targets) : null;
  }
}

/** Arrow keys move the box, or change its size with Shift; without a box they move the film. */
function moveByArrow(event: KeyboardEvent, { viewer, filmSize, viewport }: ShortcutTargets): void {
  const draft = viewer.draft.get();
  if (draft) {
    const step = ARROW_STEP * Math.max(filmSize.width, filmSize.height);
    const box = roundBox(nudgeBox(draft.box, event.key, step, event.shiftKey, filmSize));
    viewer.draft.set({ ...draft, box, drawnByPointer: false });
    return;
  }
  const [dx, dy] = ARROWS[event.key] ?? [0, 0];
  const view = viewer.view.get() ?? fitView(filmSize, viewport());
  viewer.view.set(panView(view, -dx * PAN_STEP, -dy * PAN_STEP, filmSize, viewport()));
}

function letterShortcut(key: string, targets: ShortcutTargets): Shortcut {
  const { viewer, actions, studyData, zoom } = targets;
  if (/^[1-9]$/.test(key)) {
    const finding = studyData.explanation?.concepts[Number(key) - 1];
    return () => finding && actions.chooseFinding(finding.name);
  }
  const shortcuts: Record<string, () => void> = {
    b: () => actions.placeBox(centredBox(targets.filmSize)),
    x: () => {
      const { concept } = viewer.selection.get();
      if (concept !== null) actions.toggleRejection(concept);
    },
    n: () => viewer.draft.set((draft) => draft && { ...draft, positive: !draft.positive }),
    z: actions.undo,
    y: actions.redo,
    "[": () => actions.moveInHistory(-1),
    "]": () => actions.moveInHistory(1),
    m: () => viewer.selection.set((selection) => ({ ...selection, pinned: !selection.pinned })),
    d: () =>
      viewer.selection.set((selection) => ({
        ...selection,
        kind: selection.kind === "mean" ? "disagreement" : "mean",
      })),
    ",": () => changeMapOpacity(viewer, -0.1),
    ".": () => changeMapOpacity(viewer, 0.1),
    v: () => viewer.tool.set("draw"),
    h: () => viewer.tool.set("pan"),
    w: () => viewer.tool.set("windowLevel"),
    i: () => viewer.windowLevel.set((window) => ({ ...window, inverted: !window.inverted })),
    "+": () => zoom(1.25),
    "=": () => zoom(1.25),
    "-": () => zoom(0.8),
    f: () => viewer.view.set(null),
    r: () => {
      viewer.windowLevel.set(FULL_RANGE);
      viewer.view.set(null);
    },
    t: targets.onTeach,
    "?": targets.onHelp,
  };
  return shortcuts[key] ?? null;
}

function changeMapOpacity(viewer: ViewerState, by: number): void {
  viewer.selection.set((selection) => ({
    ...selection,
    opacity: clamp(Math.round((selection.opacity + by) * 10) / 10, 0, 1),
  }));
}
