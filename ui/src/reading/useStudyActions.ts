/** What a person can do with a film, by pointer, button or key. */
import { useMemo } from "react";

import { type Box, contains, roundBox } from "../film/box";
import type { ViewerState } from "../film/viewerState";
import type { StudyActions } from "./ReadingContext";
import type { StepRequest } from "./studySteps";
import type { StudyData } from "./useStudyData";

interface ActionContext {
  viewer: ViewerState;
  studyData: StudyData;
  takeStep: (request: StepRequest, onDone?: () => void) => void;
  locked: boolean;
  saving: boolean;
}

export function useStudyActions(context: ActionContext): StudyActions {
  const { viewer, studyData, takeStep, locked, saving } = context;
  return useMemo(() => {
    const current = { viewer, studyData, takeStep, locked, saving };
    return { ...boxActions(current), ...stepActions(current) };
  }, [viewer, studyData, takeStep, locked, saving]);
}

function boxActions({ viewer, studyData, takeStep, locked, saving }: ActionContext) {
  const selectCorrection = (correctionIndex: number) => {
    const correction = studyData.study?.corrections[correctionIndex];
    if (!correction?.box || !correction.concept) return;
    const { box, concept, kind } = correction;
    viewer.draft.set({ box, concept, positive: kind === "box", correctionIndex, moving: false });
    viewer.selection.set((selection) => ({ ...selection, concept }));
  };
  return {
    selectCorrection,
    chooseFinding: (concept: string) => {
      viewer.selection.set((selection) => ({
        ...selection,
        concept,
        pinned: selection.concept !== concept || !selection.pinned,
      }));
      const draft = viewer.draft.get();
      if (draft && draft.correctionIndex === null) viewer.draft.set({ ...draft, concept });
    },
    drawBox: (box: Box, done: boolean, isNew: boolean) => {
      const { concept } = viewer.selection.get();
      if (locked || concept === null) return;
      const draft = viewer.draft.get();
      const base = isNew || !draft ? { concept, positive: true, correctionIndex: null } : draft;
      viewer.draft.set({ ...base, box: done ? roundBox(box) : box, moving: !done, drawnByPointer: true });
    },
    placeBox: (box: Box) => {
      const { concept } = viewer.selection.get();
      if (!locked && concept !== null)
        viewer.draft.set({ box, concept, positive: true, correctionIndex: null, moving: false });
    },
    selectBoxAt: (x: number, y: number) => {
      const smallest = (studyData.shownStudy?.corrections ?? [])
        .flatMap(({ box }, index) => (box && contains(box, { x, y }) ? [{ box, index }] : []))
        .sort((a, b) => area(a.box) - area(b.box))[0];
      if (locked || viewer.teaching.get() || !smallest) viewer.draft.set(null);
      else selectCorrection(smallest.index);
    },
    applyDraft: () => {
      const draft = viewer.draft.get();
      if (!draft || draft.moving || locked || saving || viewer.teaching.get()) return;
      const { box, concept, positive, correctionIndex } = draft;
      const content = { statement: { box, concept, positive }, confirmed: false, reason: null };
      // The person may have drawn another box while this one was being saved; that one stays.
      const onDone = () => viewer.draft.set((current) => (current === draft ? null : current));
      if (correctionIndex === null) takeStep({ kind: "box", ...content }, onDone);
      else takeStep({ kind: "redraw", correctionIndex, ...content }, onDone);
    },
    discardDraft: () => {
      if (viewer.draft.get()) viewer.draft.set(null);
      else viewer.historyStep.set(null);
    },
    removeBox: () => {
      const correctionIndex = viewer.draft.get()?.correctionIndex;
      if (correctionIndex === null || correctionIndex === undefined) viewer.draft.set(null);
      else if (!locked && !saving)
        takeStep({ kind: "withdraw", correctionIndex }, () => viewer.draft.set(null));
    },
  };
}

function stepActions({ viewer, studyData, takeStep, locked, saving }: ActionContext) {
  const { study } = studyData;
  const canTakeStep = !locked && !saving;
  return {
    toggleRejection: (concept: string) => {
      if (!canTakeStep) return;
      const correctionIndex =
        study?.corrections.findIndex(
          (correction) => correction.kind === "reject" && correction.concept === concept,
        ) ?? -1;
      if (correctionIndex < 0) takeStep({ kind: "reject", concept });
      else takeStep({ kind: "withdraw", correctionIndex });
    },
    undo: () => {
      if (canTakeStep && study?.can_undo) takeStep({ kind: "undo" }, () => viewer.draft.set(null));
    },
    redo: () => {
      if (canTakeStep && study?.can_redo) takeStep({ kind: "redo" }, () => viewer.draft.set(null));
    },
    moveInHistory: (by: number) => {
      const last = study?.revision ?? 0;
      const step = Math.min(Math.max((viewer.historyStep.get() ?? last) + by, 0), last);
      viewer.draft.set(null);
      viewer.historyStep.set(step === last ? null : step);
    },
  };
}

function area(box: Box): number {
  return (box.x2 - box.x1) * (box.y2 - box.y1);
}
