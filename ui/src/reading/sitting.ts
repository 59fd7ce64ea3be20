/** One person at one film: everything that the parts of the reading screen share. */
import { createContext, useContext } from "react";

import type { Correction } from "../api/types";
import type { Box } from "../film/box";
import type { Desk } from "../film/desk";
import type { LiveCheck } from "./liveCheck";
import type { StepAsked } from "./steps";
import type { Reading } from "./useReading";
import type { Words } from "../words/words";

export interface Acts {
  choose: (concept: string) => void;
  /** `fresh`: another box than the one that lies there. */
  draw: (box: Box, done: boolean, fresh: boolean) => void;
  /** A new box without a hand: nobody is asked about it before it is applied. */
  place: (box: Box) => void;
  pick: (x: number, y: number) => void;
  select: (number: number) => void;
  apply: () => void;
  discard: () => void;
  remove: () => void;
  toggleRejection: (concept: string) => void;
  undo: () => void;
  redo: () => void;
  lookBack: (by: number) => void;
}

export interface Sitting {
  desk: Desk;
  reading: Reading;
  acts: Acts;
  step: (asked: StepAsked) => void;
  /** A step is on its way. */
  busy: boolean;
  /** The last step failed for now, and is being tried again. */
  retrying: boolean;
  live: LiveCheck | null;
  /** Nothing can be corrected: somebody else's study, or one looks back. */
  locked: boolean;
}

export const SittingContext = createContext<Sitting | null>(null);

export function useSitting(): Sitting {
  const sitting = useContext(SittingContext);
  if (!sitting) throw new Error("Nobody sits here.");
  return sitting;
}

export function titleOf(reading: Reading, concept: string | null, words: Words["reading"]): string {
  if (concept === null) return words.everything;
  return reading.concepts.find((one) => one.name === concept)?.title ?? concept;
}

export function positionOf(reading: Reading, concept: string | null): number {
  return reading.concepts.findIndex((one) => one.name === concept);
}

/** A correction as one would say it. */
export function said(reading: Reading, correction: Correction, words: Words["reading"]): string {
  const title = titleOf(reading, correction.concept ?? null, words);
  if (correction.kind === "reject") return words.rejected(title);
  return correction.kind === "box" ? words.boxFor(title) : words.boxAgainst(title);
}
