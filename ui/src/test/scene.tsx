/** A scene for tests: a film with a cavity and an effusion, a model that knows three findings, and a person. */
import { render, type RenderResult } from "@testing-library/react";
import type { ReactNode } from "react";
import { type Mock, vi } from "vitest";

import type {
  Check, Concept, ConceptSeen, Correction, Explanation, Film, Step, Study,
} from "../api/types"; // prettier-ignore
import { createDesk } from "../film/desk";
import { type Acts, type Sitting, SittingContext } from "../reading/sitting";
import type { Reading } from "../reading/useReading";
import { settings } from "../settings/settings";

export const CAVITY_BOX = { x1: 400, y1: 300, x2: 600, y2: 450 };

/** 2000 by 1600 pixels, each of them 0.1 mm across and 0.2 mm down. */
export const FILM: Film = {
  id: "f1",
  age: 54,
  sex: "F",
  arrived_at: "2026-03-09T12:00:00Z",
  arrived_by: "grace",
  prediction: null,
  readings: [],
  facts: {
    applied: [],
    bits: 12,
    format: "DICOM",
    laterality: null,
    modality: "DX",
    photometric: "MONOCHROME2",
    size: { width: 2000, height: 1600 },
    spacing: [0.2, 0.1],
    transfer_syntax: null,
    view: "PA",
    warnings: [],
  },
};

const concept = (name: string, title: string): Concept => ({
  name,
  title,
  description: `${title}.`,
  judged: false,
  taught_by_films: false,
  trained: true,
});
export const CONCEPTS = [
  concept("cavity", "Cavity"),
  concept("effusion", "Pleural effusion"),
  concept("nodule", "Nodule"),
];

export const boxed = (changed: Partial<Correction> = {}): Correction => ({
  kind: "box",
  concept: "cavity",
  box: CAVITY_BOX,
  check: null,
  confirmed: false,
  ...changed,
});
export const rejected = (name: string): Correction => boxed({ kind: "reject", concept: name, box: null });

export const study = (changed: Partial<Study> = {}): Study => ({
  id: "s1",
  film: "f1",
  model: "m1",
  reader: "grace",
  revision: 0,
  at: 0,
  can_undo: false,
  can_redo: false,
  opened_at: "2026-03-09T12:00:00Z",
  changed_at: "2026-03-09T12:00:00Z",
  notice: "",
  corrections: [],
  prediction: { active_tb: 0.7, healthy: 0.3 },
  first_prediction: { active_tb: 0.7, healthy: 0.3 },
  ...changed,
});

export const stepTaken = (changed: Partial<Step> = {}): Step => ({
  step: 1,
  event: 10,
  at: "2026-03-09T12:00:00Z",
  by: "grace",
  kind: "corrected",
  about: "corrected",
  correction: boxed(),
  replaced: null,
  reason: null,
  before: { active_tb: 0.7, healthy: 0.3 },
  after: { active_tb: 0.9, healthy: 0.1 },
  ...changed,
});

/** Somebody said cavity where the model sees an effusion. */
export const CHECK: Check = {
  claimed: "cavity",
  dominant: "effusion",
  rival: "effusion",
  concepts: [
    { name: "effusion", mean: 0.61, variance: 0.01 },
    { name: "cavity", mean: 0.22, variance: 0.01 },
  ],
  gap: 0.39,
  allowed: 0.05,
  gate: null,
  calibrated: true,
  mismatch: true,
  silenced: false,
  origin: "learnt",
  reason: "",
};

export const seen = (name: string, title: string, changed: Partial<ConceptSeen> = {}): ConceptSeen => ({
  name,
  title,
  words: "clearly seen",
  strength: 0.8,
  score: 0.8,
  present_score: 1,
  absent_score: 0,
  rejected: false,
  moves: {},
  mean: [],
  disagreement: [],
  exemplars: [],
  peak: { x: 500, y: 375 },
  ...changed,
});

export const explanation = (concepts: ConceptSeen[]): Explanation => ({
  concepts,
  attention: null,
  drawn: [],
  film: { width: 2000, height: 1600 },
  grid: { columns: 16, rows: 16 },
  notice: "",
  probabilities: {},
  warnings: [],
});

export function readingOf(changed: Partial<Reading> = {}): Reading {
  const now = changed.study ?? study();
  return {
    film: FILM,
    model: undefined,
    models: [],
    concepts: CONCEPTS,
    study: now,
    shown: now,
    explanation: undefined,
    settling: false,
    steps: [],
    error: null,
    again: () => undefined,
    ...changed,
  };
}

export type Watched<T> = { [Name in keyof T]: T[Name] & Mock };

/** Nothing happens, and it is noted who asked for it. */
export const watchedActs = (): Watched<Acts> => ({
  choose: vi.fn(),
  draw: vi.fn(),
  place: vi.fn(),
  pick: vi.fn(),
  select: vi.fn(),
  apply: vi.fn(),
  discard: vi.fn(),
  remove: vi.fn(),
  toggleRejection: vi.fn(),
  undo: vi.fn(),
  redo: vi.fn(),
  lookBack: vi.fn(),
});

export function sittingOf(changed: Partial<Sitting> = {}): Sitting & { acts: Watched<Acts>; step: Mock } {
  const acts = watchedActs();
  return {
    desk: createDesk("f1"),
    reading: readingOf(),
    busy: false,
    retrying: false,
    live: null,
    locked: false,
    ...changed,
    acts,
    step: vi.fn(),
  };
}

export function show(shown: ReactNode, sitting: Sitting = sittingOf()): RenderResult {
  return render(<SittingContext value={sitting}>{shown}</SittingContext>);
}

/** A browser in which nobody has been yet, that speaks English and tells per cent. */
export function freshBrowser(): void {
  window.sessionStorage.clear();
  window.localStorage.clear();
  settings.set({ language: "en", theme: "dark", lengths: "millimetres", shares: "percent", keys: true });
}

/** jsdom knows dialogs, but not how to open one. */
export function withDialogs(): void {
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) {
    this.open = false;
  };
}
