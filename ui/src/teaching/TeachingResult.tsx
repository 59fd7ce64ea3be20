import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { client, unwrap } from "../api/client";
import { Problem } from "../api/problems";
import { modelsQuery } from "../api/sharedQueries";
import type { Correction, Step, Study } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { useReadingContext } from "../reading/ReadingContext";
import { isSameCorrection, postStep, type StepRequest } from "../reading/studySteps";
import { NOT_TEACHING, teachingState, uncarriedCorrections } from "./teachingState";

interface Props {
  learnt: { model: string; concept: string };
  onKept: (model: string) => void;
}

/** Shows the new finding on the film; keep or discard the model that learnt it. */
export function TeachingResult({ learnt, onKept }: Props) {
  const words = useWords();
  const { viewer, studyData } = useReadingContext();
  const { mapShown } = useStore(teachingState);
  const [carryOver, setCarryOver] = useState(true);
  const queryClient = useQueryClient();
  const explanation = useQuery(explanationQuery(viewer.film, learnt.model));
  const newFinding = explanation.data?.concepts.find((finding) => finding.name === learnt.concept);
  const endTeaching = () => {
    void queryClient.invalidateQueries({ queryKey: modelsQuery.queryKey });
    teachingState.set(NOT_TEACHING);
  };
  const keepMutation = useMutation({
    mutationFn: () => keepModel(viewer.film, learnt.model, carryOver ? studyData.study : undefined),
    onSuccess: (skipped) => {
      endTeaching();
      uncarriedCorrections.set(skipped);
      onKept(learnt.model);
    },
  });
  const discardMutation = useMutation({
    mutationFn: () =>
      unwrap(client.DELETE("/api/v1/models/{model}", { params: { path: { model: learnt.model } } })),
    onSuccess: endTeaching,
  });
  const count = studyData.study?.corrections.length ?? 0;
  const busy = keepMutation.isPending || discardMutation.isPending;
  return (
    <div className="stack">
      <p role="status">{words.teaching.learntHint}</p>
      {newFinding && (
        <p>{words.teaching.onThisFilm(words.reading.certainty[newFinding.words] ?? newFinding.words)}</p>
      )}
      <button
        type="button"
        aria-pressed={mapShown}
        onClick={() => teachingState.set((current) => ({ ...current, mapShown: !mapShown }))}
      >
        {mapShown ? words.teaching.hideMap : words.teaching.showMap}
      </button>
      {count > 0 && (
        <label className="row">
          <input
            type="checkbox"
            checked={carryOver}
            onChange={(event) => setCarryOver(event.target.checked)}
          />
          {words.teaching.carry(count)}
        </label>
      )}
      {(keepMutation.isError || discardMutation.isError) && (
        <ErrorMessage error={keepMutation.error ?? discardMutation.error} />
      )}
      <div className="row end">
        <button type="button" disabled={busy} onClick={() => discardMutation.mutate()}>
          {words.teaching.discard}
        </button>
        <button type="button" className="primary" disabled={busy} onClick={() => keepMutation.mutate()}>
          {words.teaching.keep}
        </button>
      </div>
    </div>
  );
}

const explanationQuery = (film: string, model: string) => ({
  queryKey: ["seen", film, model],
  queryFn: () =>
    unwrap(client.GET("/api/v1/films/{film}/explanation", { params: { path: { film }, query: { model } } })),
  staleTime: Infinity,
});

/**
 * Carry the corrections of the earlier study over to the new model, in order and with their reasons, then put the model
 * to use. Returns the number of skipped corrections: those that the new model's check warns about, even if they were
 * confirmed against the earlier model. Can be repeated after an error.
 */
async function keepModel(film: string, model: string, earlier: Study | undefined): Promise<number> {
  const skipped = earlier && earlier.model !== model ? await carryCorrections(film, model, earlier) : 0;
  await unwrap(client.POST("/api/v1/models/{model}/use", { params: { path: { model } } }));
  return skipped;
}

async function carryCorrections(film: string, model: string, earlier: Study): Promise<number> {
  if (earlier.corrections.length === 0) return 0;
  const params = { path: { study: earlier.id } };
  const steps = await unwrap(client.GET("/api/v1/studies/{study}/history", { params }));
  let study = await unwrap(client.POST("/api/v1/studies", { body: { film, model } }));
  let skipped = 0;
  for (const correction of earlier.corrections) {
    if (study.corrections.some((existing) => isSameCorrection(existing, correction))) continue;
    const request = requestFor(correction, steps);
    try {
      if (request) study = await postStep(study, request);
      else skipped++;
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "concept_mismatch") throw error;
      skipped++;
    }
  }
  return skipped;
}

/** The step that repeats a correction; null for a correction of all findings, because the new model has others. */
function requestFor(correction: Correction, steps: readonly Step[]): StepRequest | null {
  const { box, concept, kind } = correction;
  if (!concept) return null;
  if (!box) return { kind: "reject", concept };
  const reason =
    steps.findLast((step) => STATED.has(step.kind) && isSameCorrection(step.correction, correction))
      ?.reason ?? null;
  return { kind: "box", statement: { box, concept, positive: kind === "box" }, confirmed: false, reason };
}

const STATED = new Set(["corrected", "redrawn"]);
