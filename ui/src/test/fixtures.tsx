/** Fixtures: a film with a cavity and an effusion, a model with three findings, a user. */
import { render, type RenderResult } from "@testing-library/react";
import type { ReactNode } from "react";
import { type Mock, vi } from "vitest";

import type {
  Check, Concept, ConceptExplanation, Correction, Explanation, Film, Step, Study,
} from "../api/types"; // prettier-ignore
import { createViewerState } from "../film/viewerState";
import { type StudyActions, type ReadingContextValue, ReadingContext } from "../reading/ReadingContext";
import type { StudyData } from "../reading/useStudyData";
import { settings } from "../settings/settings";

export const CAVITY_BOX = { x1: 400, y1: 300, x2: 600, y2: 450 };

/** 2000 by 1600 pixels; pixel spacing 0.1 mm across and 0.2 mm down. */
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

export const stepOf = (changed: Partial<Step> = {}): Step => ({
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

/** The person says cavity where the model sees an effusion. */
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

export const conceptSeen = (
  name: string,
  title: string,
  changed: Partial<ConceptExplanation> = {},
): ConceptExplanation => ({
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

export const explanation = (concepts: ConceptExplanation[]): Explanation => ({
  concepts,
  attention: null,
  drawn: [],
  film: { width: 2000, height: 1600 },
  grid: { columns: 16, rows: 16 },
  notice: "",
  probabilities: {},
  warnings: [],
});

export function studyDataOf(changed: Partial<StudyData> = {}): StudyData {
  const current = changed.study ?? study();
  return {
    film: FILM,
    models: [],
    concepts: CONCEPTS,
    study: current,
    shownStudy: current,
    explanation: undefined,
    isStale: false,
    steps: [],
    error: null,
    retry: () => undefined,
    ...changed,
  };
}

export type Mocked<T> = { [Name in keyof T]: T[Name] & Mock };

/** Actions that only record their calls. */
export const mockActions = (): Mocked<StudyActions> => ({
  chooseFinding: vi.fn(),
  drawBox: vi.fn(),
  placeBox: vi.fn(),
  selectBoxAt: vi.fn(),
  selectCorrection: vi.fn(),
  applyDraft: vi.fn(),
  discardDraft: vi.fn(),
  removeBox: vi.fn(),
  toggleRejection: vi.fn(),
  undo: vi.fn(),
  redo: vi.fn(),
  moveInHistory: vi.fn(),
});

export function contextOf(
  changed: Partial<ReadingContextValue> = {},
): ReadingContextValue & { actions: Mocked<StudyActions>; takeStep: Mock } {
  const actions = mockActions();
  return {
    viewer: createViewerState("f1"),
    studyData: studyDataOf(),
    saving: false,
    retrying: false,
    liveCheck: null,
    locked: false,
    ...changed,
    actions,
    takeStep: vi.fn(),
  };
}

export function renderInContext(
  children: ReactNode,
  context: ReadingContextValue = contextOf(),
): RenderResult {
  return render(<ReadingContext value={context}>{children}</ReadingContext>);
}

/** Empty the browser's storage; English, percent. */
export function resetBrowser(): void {
  window.sessionStorage.clear();
  window.localStorage.clear();
  settings.set({ language: "en", theme: "dark", lengths: "millimetres", shares: "percent", keys: true });
}

/** jsdom does not implement showModal and close. */
export function stubDialogs(): void {
  HTMLDialogElement.prototype.showModal = function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function (this: HTMLDialogElement) {
    this.open = false;
  };
}
