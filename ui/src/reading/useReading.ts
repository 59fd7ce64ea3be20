/** A film in front of a model and a person, as the page knows it. */
import { type QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";

import { client, told } from "../api/client";
import { conceptsQuery, filmQuery, modelsQuery } from "../api/queries";
import { Problem } from "../api/problems";
import type { Check, Concept, Explanation, Film, Model, Step, Study } from "../api/types";
import { useStore } from "../parts/store";
import type { Desk } from "../film/desk";
import { type StepAsked, taken } from "./steps";

export interface Reading {
  film: Film | undefined;
  model: Model | undefined;
  models: readonly Model[];
  concepts: readonly Concept[];
  /** As it stands. */
  study: Study | undefined;
  /** As one looks at it: as it stands, or as it stood. */
  shown: Study | undefined;
  explanation: Explanation | undefined;
  /** What is shown is still of the step before. */
  settling: boolean;
  steps: readonly Step[];
  error: unknown;
  again: () => void;
}

export function useReading(desk: Desk, version: string | undefined): Reading {
  const back = useStore(desk.back);
  const film = useQuery(filmQuery(desk.film));
  const models = useQuery(modelsQuery);
  const opened = useQuery(studyQuery(desk.film, version));
  const study = opened.data;
  const { shown, steps, explanation, concepts, settling, error } = useStudied(study, back);
  return {
    film: film.data,
    model: models.data?.find((one) => one.version === study?.model),
    models: models.data ?? NONE,
    concepts: concepts.data ?? NONE,
    study,
    shown,
    explanation: explanation.data,
    settling,
    steps,
    error: opened.error ?? film.error ?? error,
    again: () => void Promise.all([opened.refetch(), film.refetch(), explanation.refetch()]),
  };
}

/** What is asked about a study once it was opened. */
function useStudied(study: Study | undefined, back: number | null) {
  const { id, revision, model } = study ?? UNOPENED;
  const at = back ?? revision;
  const stood = useQuery({ ...studyAtQuery(id, at), enabled: back !== null && id !== "" });
  const explanation = useQuery({ ...explanationQuery(id, at), enabled: id !== "" });
  const steps = useQuery({ ...historyQuery(id, revision), enabled: revision > 0 });
  const concepts = useQuery({ ...conceptsQuery(model), enabled: id !== "" });
  return {
    shown: back === null ? study : stood.data,
    explanation,
    settling: explanation.isPlaceholderData || (back !== null && stood.isPlaceholderData),
    error: [explanation, concepts, stood, steps].find((one) => one.error)?.error ?? null,
    concepts,
    steps: revision > 0 ? (steps.data ?? NONE) : NONE,
  };
}

const NONE: never[] = [];
const UNOPENED = { id: "", revision: 0, model: "" };

/**
 * Opening a film again finds one's study as it was left, so it may be asked like anything else. Whoever reads goes on with
 * the model that they began with, whatever is put to use meanwhile.
 */
export const studyQuery = (film: string, version: string | undefined) => ({
  queryKey: ["study", film, version ?? ""],
  queryFn: ({ client: queries, queryKey }: { client: QueryClient; queryKey: string[] }) => {
    const model = version ?? queries.getQueryData<Study>(queryKey)?.model;
    return told(client.POST("/api/v1/studies", { body: { film, ...(model ? { model } : {}) } }));
  },
  gcTime: 0,
});

/** What was told of another step of the same study, until this one's comes; never of another study. */
function ofTheSame(study: string) {
  return <T>(old: T | undefined, query: { queryKey: readonly unknown[] } | undefined): T | undefined =>
    query?.queryKey[1] === study ? old : undefined;
}

const studyAtQuery = (study: string, at: number) => ({
  queryKey: ["study-at", study, at],
  queryFn: () => told(client.GET("/api/v1/studies/{study}", { params: { path: { study }, query: { at } } })),
  placeholderData: ofTheSame(study),
});

export const explanationQuery = (study: string, at: number) => ({
  queryKey: ["explanation", study, at],
  queryFn: () =>
    told(client.GET("/api/v1/studies/{study}/explanation", { params: { path: { study }, query: { at } } })),
  placeholderData: ofTheSame(study),
  staleTime: Infinity,
});

const historyQuery = (study: string, revision: number) => ({
  queryKey: ["history", study, revision],
  queryFn: () => told(client.GET("/api/v1/studies/{study}/history", { params: { path: { study } } })),
  placeholderData: ofTheSame(study),
  staleTime: Infinity,
});

export interface Doubt {
  check: Check;
  asked: StepAsked & { kind: "box" | "redraw" };
}

/** Take a step; a box that the model doubts is handed back instead. */
export function useStep(reading: Reading, version: string | undefined, onDoubt: (doubt: Doubt) => void) {
  const queries = useQueryClient();
  const { study } = reading;
  const mutation = useMutation({
    mutationFn: ({ study, asked }: { study: Study; asked: StepAsked }) => taken(study, asked),
    onSuccess: async (now) => {
      const { queryKey } = studyQuery(now.film, version);
      // An answer from before the step must not come after it.
      await queries.cancelQueries({ queryKey });
      queries.setQueryData(queryKey, now);
    },
    onError: (error, { asked }) => {
      if (!(error instanceof Problem)) return;
      if (error.code === "stale_study") void queries.invalidateQueries({ queryKey: ["study"] });
      if (error.check && (asked.kind === "box" || asked.kind === "redraw"))
        onDoubt({ check: error.check, asked });
    },
  });
  const { mutate } = mutation;
  const step = useCallback(
    (asked: StepAsked, done?: (now: Study) => void) => {
      if (study) mutate({ study, asked }, { onSuccess: (now) => done?.(now) });
    },
    [study, mutate],
  );
  return { step, mutation };
}
