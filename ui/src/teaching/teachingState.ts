/**
 * State of teaching a finding. It survives a reload and a change of film, because examples may come from
 * several films.
 */
import type { Box } from "../film/box";
import type { Size } from "../film/panZoom";
import { createKeptStore, createStore } from "../lib/store";

export interface Example {
  film: string;
  size: Size;
  box: Box;
}

export interface TeachingState {
  /** The teaching panel is open. */
  open: boolean;
  title: string;
  description: string;
  examples: Example[];
  /** Id of the server's job while the model learns. */
  job: string | null;
  learnt: { model: string; concept: string } | null;
  /** The map of the new finding is shown on the film. */
  mapShown: boolean;
}

export const NOT_TEACHING: TeachingState = {
  open: false,
  title: "",
  description: "",
  examples: [],
  job: null,
  learnt: null,
  mapShown: true,
};

export const teachingState = createKeptStore<TeachingState>(
  "medgrape.teaching",
  NOT_TEACHING,
  "sessionStorage",
);

/** Number of corrections not carried over to the new model, because its check warned about them. */
export const uncarriedCorrections = createStore(0);

/** While examples are collected, new boxes are examples and not corrections. */
export function isCollectingExamples(state: TeachingState): boolean {
  return state.open && state.job === null && state.learnt === null;
}

/** Identifier of a finding: `Thick-walled cavity` becomes `thick_walled_cavity`. */
export function conceptName(title: string): string {
  const plain = title.normalize("NFKD").replace(/\p{M}/gu, "").replaceAll("ß", "ss").toLowerCase();
  const joined = plain.replace(/[^a-z0-9]+/g, "_").replace(/^[_0-9]+|_+$/g, "");
  return joined.slice(0, 63);
}

export function canTeach(state: TeachingState): boolean {
  return conceptName(state.title) !== "" && state.description.trim() !== "";
}
