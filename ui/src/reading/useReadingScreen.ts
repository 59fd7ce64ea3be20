/** State of the reading screen: saving, warnings, zoom, shortcuts and the address of the map on the film. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { hasRole, session } from "../api/session";
import { pictureQuery } from "../api/sharedQueries";
import type { Study } from "../api/types";
import { fitView, type Size, zoomView } from "../film/panZoom";
import { type BoxDraft, conceptOnMap, type ViewerState } from "../film/viewerState";
import { useStore } from "../lib/store";
import { isCollectingExamples, teachingState } from "../teaching/teachingState";
import { LiveCheck } from "./liveCheck";
import type { ReadingContextValue } from "./ReadingContext";
import { requestAfterDecision, useMismatchWarning } from "./useMismatchWarning";
import { useShortcuts } from "./useShortcuts";
import { useStudyActions } from "./useStudyActions";
import { type StudyData, useTakeStep } from "./useStudyData";

/** The shared context, the open mismatch dialog, and the error of the last step. */
export function useReadingScreen(viewer: ViewerState, studyData: StudyData, version: string | undefined) {
  const { me } = useStore(session);
  const historyStep = useStore(viewer.historyStep);
  const teaching = useStore(teachingState);
  const locked = historyStep !== null || studyData.study?.reader !== me?.name;
  const liveCheck = useLiveCheck(studyData.study?.id);
  const { warning, setWarning } = useMismatchWarning(viewer, liveCheck, locked);
  const { takeStep, mutation } = useTakeStep(studyData, version, setWarning);
  const saving = mutation.isPending;
  const actions = useStudyActions({ viewer, studyData, takeStep, locked, saving });
  useDefaultFinding(viewer, studyData);
  useResetOnNewRevision(viewer, setWarning, studyData.study);
  useEffect(() => viewer.teaching.set(isCollectingExamples(teaching)), [viewer, teaching]);
  const retrying = saving && mutation.failureCount > 0;
  const context: ReadingContextValue = {
    viewer,
    studyData,
    actions,
    takeStep,
    saving,
    retrying,
    liveCheck,
    locked,
  };
  const decide = (decision: { concept: string } | { reason: string }) => {
    if (!warning) return;
    const draft = viewer.draft.get();
    setWarning(null);
    takeStep(requestAfterDecision(warning, decision), () =>
      viewer.draft.set((current) => (current === draft ? null : current)),
    );
  };
  const mismatchDialog = warning && {
    warning,
    onCancel: () => {
      setWarning(null);
      mutation.reset();
      viewer.draft.set(null);
    },
    onChange: (concept: string) => decide({ concept }),
    onConfirm: (reason: string) => decide({ reason }),
  };
  return {
    context,
    mismatchDialog,
    stepError: saving ? null : mutation.error,
    clearStepError: () => mutation.reset(),
  };
}

/** Zoom, teaching examples and keyboard shortcuts. `filmArea` is the element that the film fills. */
export function useFilmControls(
  { viewer, studyData, actions }: ReadingContextValue,
  filmSize: Size,
  goToFilm: (by: 1 | -1) => void,
) {
  const { me } = useStore(session);
  const filmArea = useRef<HTMLDivElement>(null);
  const [shortcutsOpen, setShortcutsOpen] = useState(false);
  const viewport = useCallback(
    () => ({ width: filmArea.current?.clientWidth ?? 1, height: filmArea.current?.clientHeight ?? 1 }),
    [],
  );
  const zoom = useCallback(
    (factor: number) => {
      const centre = { x: viewport().width / 2, y: viewport().height / 2 };
      const view = viewer.view.get() ?? fitView(filmSize, viewport());
      viewer.view.set(zoomView(view, factor, centre, filmSize, viewport()));
    },
    [viewer, filmSize, viewport],
  );
  const addExample = useCallback(
    ({ box }: BoxDraft) => {
      const example = { film: viewer.film, size: filmSize, box };
      teachingState.set((state) => ({ ...state, examples: [...state.examples, example] }));
      viewer.draft.set(null);
    },
    [viewer, filmSize],
  );
  const openTeaching = hasRole(me, "curator")
    ? () => teachingState.set((state) => ({ ...state, open: true }))
    : null;
  const openShortcuts = () => setShortcutsOpen(true);
  useShortcuts({
    viewer,
    studyData,
    actions,
    filmSize,
    viewport,
    zoom,
    goToFilm,
    onHelp: openShortcuts,
    onTeach: () => openTeaching?.(),
    onExample: () => {
      const draft = viewer.draft.get();
      if (draft) addExample(draft);
    },
  });
  return {
    filmArea,
    zoom,
    addExample,
    openTeaching,
    shortcutsOpen,
    openShortcuts,
    closeShortcuts: () => setShortcutsOpen(false),
  };
}

function useLiveCheck(study: string | undefined): LiveCheck | null {
  const liveCheck = useMemo(() => (study ? new LiveCheck(study) : null), [study]);
  useEffect(() => {
    liveCheck?.start();
    return () => liveCheck?.stop();
  }, [liveCheck]);
  return liveCheck;
}

/** In a new revision the draft's correction index may point at another correction, and an open warning is outdated. */
function useResetOnNewRevision(
  viewer: ViewerState,
  setWarning: (warning: null) => void,
  study: Study | undefined,
): void {
  const [id, revision] = [study?.id, study?.revision];
  useEffect(() => {
    setWarning(null);
    const draft = viewer.draft.get();
    if (draft && draft.correctionIndex !== null) viewer.draft.set(null);
  }, [viewer, setWarning, id, revision]);
  useEffect(() => viewer.historyStep.set(null), [viewer, id]);
}

/** Select the most prominent finding until the person selects one that this model knows. */
function useDefaultFinding(viewer: ViewerState, { explanation, concepts }: StudyData): void {
  const first = explanation?.concepts[0]?.name;
  useEffect(() => {
    const isUnknown = (name: string | null) =>
      concepts.length > 0 && !concepts.some((concept) => concept.name === name);
    const { concept } = viewer.selection.get();
    if (first && (concept === null || isUnknown(concept)))
      viewer.selection.set((selection) => ({ ...selection, concept: first }));
    const draft = viewer.draft.get();
    if (draft && isUnknown(draft.concept)) viewer.draft.set(null);
  }, [viewer, first, concepts]);
}

const MAP_SIDE = 512;

/** Address of the map shown on the film, if any. Prefetches the maps of the other findings. */
export function useMapAddress({ viewer, studyData }: ReadingContextValue): string | null {
  const selection = useStore(viewer.selection);
  const { learnt, mapShown } = useStore(teachingState);
  const queryClient = useQueryClient();
  const { shownStudy, explanation } = studyData;
  const { kind } = selection;
  const study = shownStudy && `/api/v1/studies/${shownStudy.id}`;
  const params = `kind=${kind}&side=${MAP_SIDE}&at=${shownStudy?.at ?? 0}`;
  useEffect(() => {
    if (!study) return;
    for (const { name } of explanation?.concepts ?? []) {
      queryClient.query(pictureQuery(`${study}/maps/${name}.png?${params}`)).catch(() => undefined);
    }
  }, [queryClient, study, params, explanation]);
  if (learnt && mapShown && selection.hovered === null) {
    return `/api/v1/films/${viewer.film}/maps/${learnt.concept}.png?model=${learnt.model}&kind=${kind}&side=${MAP_SIDE}`;
  }
  const name = conceptOnMap(selection);
  const isKnown = explanation?.concepts.some((concept) => concept.name === name) ?? false;
  return study && isKnown && name !== null ? `${study}/maps/${name}.png?${params}` : null;
}
