/** What lies on the desk while a film is read: what was chosen, drawn and turned, none of it yet on the server. */
import type { Box } from "./box";
import type { Tool } from "./gestures";
import { type Greys, PLAIN } from "./greys";
import type { View } from "./view";
import { createKeptStore, createStore, type Store } from "../parts/store";

/** A box that somebody draws, or an applied one that they move. */
export interface Edit {
  box: Box;
  concept: string;
  positive: boolean;
  /** Position among the corrections in force; null: a new one. */
  number: number | null;
  /** Whether the hand is still on it. */
  moving: boolean;
  /** Drawn or moved by hand, so that it lies where it should once the hand rests; of keys, only Enter says so. */
  byHand?: boolean;
}

export interface Choice {
  /** The finding that boxes are drawn for; null until the film was read. */
  concept: string | null;
  /** Whether its map stays on the film. */
  pinned: boolean;
  hovered: string | null;
  kind: "mean" | "disagreement";
  opacity: number;
}

export interface Desk {
  film: string;
  edit: Store<Edit | null>;
  greys: Store<Greys>;
  /** null: as large as fits. */
  view: Store<View | null>;
  tool: Store<Tool>;
  choice: Store<Choice>;
  /** The step that one looks back at; null: as the study stands. */
  back: Store<number | null>;
  /** Whether boxes are examples of a new finding instead of corrections. */
  teaching: Store<boolean>;
}

const FIRST_CHOICE: Choice = { concept: null, pinned: true, hovered: null, kind: "mean", opacity: 0.85 };

export function createDesk(film: string): Desk {
  const edit = createKeptStore<Edit | null>(`medgrape.edit.${film}`, null, "sessionStorage");
  const drawn = edit.get();
  // The number of an applied box means nothing in another study, or once that one moved on; it is selected anew.
  if (drawn && drawn.number !== null) edit.set(null);
  else if (drawn?.moving) edit.set({ ...drawn, moving: false });
  const choice = createKeptStore<Choice>(`medgrape.choice.${film}`, FIRST_CHOICE, "sessionStorage");
  choice.set((now) => ({ ...now, hovered: null }));
  return {
    film,
    edit,
    greys: createKeptStore<Greys>(`medgrape.greys.${film}`, PLAIN, "sessionStorage"),
    view: createStore<View | null>(null),
    tool: createStore<Tool>("draw"),
    choice,
    back: createStore<number | null>(null),
    teaching: createStore(false),
  };
}

/** The finding whose map lies on the film. */
export function mapped(choice: Choice): string | null {
  return choice.hovered ?? (choice.pinned ? choice.concept : null);
}
