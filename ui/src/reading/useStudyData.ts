/** What the server knows about the open study: film, model, findings, explanation and steps. */
import { type QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";

import { client, unwrap } from "../api/client";
import { Problem } from "../api/problems";
import { conceptsQuery, filmQuery, modelsQuery } from "../api/sharedQueries";
import type { Check, Concept, Explanation, Film, Model, Step, Study } from "../api/types";
import type { ViewerState } from "../film/viewerState";
import { useStore } from "../lib/store";
import { postStep, type StepRequest } from "./studySteps";

export interface StudyData {
  film: Film | undefined;
  models: readonly Model[];
  concepts: readonly Concept[];
  /** The current state of the study. */
  study: Study | undefined;
  /** The study as shown: the current state, or an earlier step. */
  shownStudy: Study | undefined;
  explanation: Explanation | undefined;
  /** The data shown still belong to another step, until this step's data arrive. */
  isStale: boolean;
  steps: readonly Step[];
  error: unknown;
  retry: () => void;
}

export function useStudyData(viewer: ViewerState, version: string | undefined): StudyData {
  const historyStep = useStore(viewer.historyStep);
  const film = useQuery(filmQuery(viewer.film));
  const models = useQuery(modelsQuery);
  const opened = useQuery(studyQuery(viewer.film, version));
  const study = opened.data;
  const { id, revision, model } = study ?? NO_STUDY;
  const step = historyStep ?? revision;
  const past = useQuery({ ...studyAtQuery(id, step), enabled: historyStep !== null && id !== "" });
  const explanation = useQuery({ ...explanationQuery(id, step), enabled: id !== "" });
  const steps = useQuery({ ...historyQuery(id, revision), enabled: revision > 0 });
  const concepts = useQuery({ ...conceptsQuery(model), enabled: id !== "" });
  const failed = [opened, film, explanation, concepts, past, steps].find((query) => query.error);
  return {
    film: film.data,
    models: models.data ?? EMPTY,
    concepts: concepts.data ?? EMPTY,
    study,
    shownStudy: historyStep === null ? study : past.data,
    explanation: explanation.data,
    isStale: explanation.isPlaceholderData || (historyStep !== null && past.isPlaceholderData),
    steps: revision > 0 ? (steps.data ?? EMPTY) : EMPTY,
    error: failed?.error ?? null,
    retry: () => void Promise.all([opened.refetch(), film.refetch(), explanation.refetch()]),
  };
}

const EMPTY: never[] = [];
const NO_STUDY = { id: "", revision: 0, model: "" };

/**
 * POST /studies returns the person's existing study of the film, so it can be repeated like a GET. A refetch keeps the
 * model of the open study, even if another model was put to use meanwhile.
 */
export const studyQuery = (film: string, version: string | undefined) => ({
  queryKey: ["study", film, version ?? ""],
  queryFn: ({ client: queryClient, queryKey }: { client: QueryClient; queryKey: string[] }) => {
    const model = version ?? queryClient.getQueryData<Study>(queryKey)?.model;
    return unwrap(client.POST("/api/v1/studies", { body: { film, ...(model ? { model } : {}) } }));
  },
  gcTime: 0,
});

/** Show the data of another step of the same study until this step's data arrive; never of another study. */
function keepOfSameStudy(study: string) {
  return <T>(previous: T | undefined, query: { queryKey: readonly unknown[] } | undefined): T | undefined =>
    query?.queryKey[1] === study ? previous : undefined;
}

const studyAtQuery = (study: string, at: number) => ({
  queryKey: ["study-at", study, at],
  queryFn: () =>
    unwrap(client.GET("/api/v1/studies/{study}", { params: { path: { study }, query: { at } } })),
  placeholderData: keepOfSameStudy(study),
});

const explanationQuery = (study: string, at: number) => ({
  queryKey: ["explanation", study, at],
  queryFn: () =>
    unwrap(client.GET("/api/v1/studies/{study}/explanation", { params: { path: { study }, query: { at } } })),
  placeholderData: keepOfSameStudy(study),
  staleTime: Infinity,
});

const historyQuery = (study: string, revision: number) => ({
  queryKey: ["history", study, revision],
  queryFn: () => unwrap(client.GET("/api/v1/studies/{study}/history", { params: { path: { study } } })),
  placeholderData: keepOfSameStudy(study),
  staleTime: Infinity,
});

/** The model sees another finding in the box than the person says. Nothing was applied. */
export interface MismatchWarning {
  check: Check;
  request: StepRequest & { kind: "box" | "redraw" };
}

/** Take a step. If the server refuses a box because of a mismatch, `onMismatch` gets the check. */
export function useTakeStep(
  { study }: StudyData,
  version: string | undefined,
  onMismatch: (warning: MismatchWarning) => void,
) {
  const queryClient = useQueryClient();
  const mutation = useMutation({
    mutationFn: ({ study, request }: { study: Study; request: StepRequest }) => postStep(study, request),
    onSuccess: async (updated) => {
      const { queryKey } = studyQuery(updated.film, version);
      // A refetch that started before the step must not overwrite its result.
      await queryClient.cancelQueries({ queryKey });
      queryClient.setQueryData(queryKey, updated);
    },
    onError: (error, { request }) => {
      if (!(error instanceof Problem)) return;
      if (error.code === "stale_study") void queryClient.invalidateQueries({ queryKey: ["study"] });
      if (error.check && (request.kind === "box" || request.kind === "redraw"))
        onMismatch({ check: error.check, request });
    },
  });
  const { mutate } = mutation;
  const takeStep = useCallback(
    (request: StepRequest, onDone?: () => void) => {
      if (study) mutate({ study, request }, { onSuccess: () => onDone?.() });
    },
    [study, mutate],
  );
  return { takeStep, mutation };
}
