/** A finding that is being taught. It outlives a film, since examples may come from several, and a reload. */
import type { Box } from "../film/box";
import type { Size } from "../film/view";
import { createKeptStore, createStore } from "../parts/store";

export interface Example {
  film: string;
  size: Size;
  box: Box;
}

export interface Lesson {
  /** Whether somebody is teaching. */
  open: boolean;
  title: string;
  description: string;
  examples: Example[];
  /** The work on the server, while the model learns. */
  job: string | null;
  learnt: { model: string; concept: string } | null;
  /** Whether the map of what was learnt lies on the film. */
  shown: boolean;
}

export const NOTHING: Lesson = {
  open: false,
  title: "",
  description: "",
  examples: [],
  job: null,
  learnt: null,
  shown: true,
};

export const lesson = createKeptStore<Lesson>("medgrape.lesson", NOTHING, "sessionStorage");

/** Corrections that were not carried over to the model that was kept, since it doubts them. */
export const leftBehind = createStore(0);

/** Examples are being gathered: boxes are examples now, and no corrections. */
export function isGathering(now: Lesson): boolean {
  return now.open && now.job === null && now.learnt === null;
}

/** A title as programs name it: `Thick-walled cavity` is `thick_walled_cavity`. */
export function shortName(title: string): string {
  const plain = title.normalize("NFKD").replace(/\p{M}/gu, "").replaceAll("ß", "ss").toLowerCase();
  const joined = plain.replace(/[^a-z0-9]+/g, "_").replace(/^[_0-9]+|_+$/g, "");
  return joined.slice(0, 63);
}

export function canLearn(now: Lesson): boolean {
  return shortName(now.title) !== "" && now.description.trim() !== "";
}
