/**
 * State of one film's viewer in the browser: box draft, window, view, tool, selection. Nothing of it is on
 * the server yet.
 */
import { createKeptStore, createStore, type Store } from "../lib/store";
import type { Box } from "./box";
import type { Tool } from "./gestures";
import type { View } from "./panZoom";
import { FULL_RANGE, type WindowLevel } from "./windowLevel";

/** A new box that is being drawn, or an applied box that is being edited. */
export interface BoxDraft {
  box: Box;
  concept: string;
  positive: boolean;
  /** Index in the study's corrections; null for a new box. */
  correctionIndex: number | null;
  /** The pointer is still down. */
  moving: boolean;
  /**
   * Drawn or moved with the pointer: the box is final when the pointer is released. A box placed by keys is
   * final only on Enter.
   */
  drawnByPointer?: boolean;
}

export interface Selection {
  /** The finding that new boxes are for; null until the model has read the film. */
  concept: string | null;
  /** Its map stays on the film. */
  pinned: boolean;
  hovered: string | null;
  kind: "mean" | "disagreement";
  opacity: number;
}

export interface ViewerState {
  film: string;
  draft: Store<BoxDraft | null>;
  windowLevel: Store<WindowLevel>;
  /** null: fit the film to the viewport. */
  view: Store<View | null>;
  tool: Store<Tool>;
  selection: Store<Selection>;
  /** The earlier step that is shown; null for the current state. */
  historyStep: Store<number | null>;
  /** New boxes are examples of a taught finding, not corrections. */
  teaching: Store<boolean>;
}

const DEFAULT_SELECTION: Selection = {
  concept: null,
  pinned: true,
  hovered: null,
  kind: "mean",
  opacity: 0.85,
};

export function createViewerState(film: string): ViewerState {
  const draft = createKeptStore<BoxDraft | null>(`medgrape.draft.${film}`, null, "sessionStorage");
  const drawn = draft.get();
  // After a reload, the index of an applied box may point at another correction. Drop the draft.
  if (drawn && drawn.correctionIndex !== null) draft.set(null);
  else if (drawn?.moving) draft.set({ ...drawn, moving: false });
  const selection = createKeptStore<Selection>(
    `medgrape.selection.${film}`,
    DEFAULT_SELECTION,
    "sessionStorage",
  );
  selection.set((current) => ({ ...current, hovered: null }));
  return {
    film,
    draft,
    windowLevel: createKeptStore<WindowLevel>(`medgrape.windowLevel.${film}`, FULL_RANGE, "sessionStorage"),
    view: createStore<View | null>(null),
    tool: createStore<Tool>("draw"),
    selection,
    historyStep: createStore<number | null>(null),
    teaching: createStore(false),
  };
}

/** The finding whose map is shown on the film. */
export function conceptOnMap(selection: Selection): string | null {
  return selection.hovered ?? (selection.pinned ? selection.concept : null);
}
