import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { client, unwrap } from "../api/client";
import { Problem } from "../api/problems";
import { modelsQuery } from "../api/sharedQueries";
import type { Correction, Step, Study } from "../api/types";
import { isSameBox } from "../film/box";
import { useStore } from "../lib/store";
import { ErrorMessage } from "../components/ErrorMessage";
import { useReadingContext } from "../reading/ReadingContext";
import { type StepRequest, postStep } from "../reading/studySteps";
import { useWords } from "../i18n/words";
import { uncarriedCorrections, teachingState, NOT_TEACHING } from "./teachingState";

interface Props {
  learnt: { model: string; concept: string };
  onKept: (model: string) => void;
}

/** Shows the new finding on the film; keep or discard the model that learnt it. */
export function TeachingResult({ learnt, onKept }: Props) {
  const words = useWords();
  const { viewer, studyData } = useReadingContext();
  const { mapShown } = useStore(teachingState);
  const [carried, setCarried] = useState(true);
  const queries = useQueryClient();
  const explanation = useQuery(explanationQuery(viewer.film, learnt.model));
  const found = explanation.data?.concepts.find((finding) => finding.name === learnt.concept);
  const endTeaching = () => {
    void queries.invalidateQueries({ queryKey: modelsQuery.queryKey });
    teachingState.set(NOT_TEACHING);
  };
  const keepMutation = useMutation({
    mutationFn: () => keepModel(viewer.film, learnt.model, carried ? studyData.study : undefined),
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
      {found && <p>{words.teaching.onThisFilm(words.reading.certainty[found.words] ?? found.words)}</p>}
      <button
        type="button"
        aria-pressed={mapShown}
        onClick={() => teachingState.set((current) => ({ ...current, mapShown: !mapShown }))}
      >
        {mapShown ? words.teaching.hideMap : words.teaching.showMap}
      </button>
      {count > 0 && (
        <label className="row">
          <input type="checkbox" checked={carried} onChange={(event) => setCarried(event.target.checked)} />
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
 * Take the corrections of the earlier study over, in their order and with their reasons, then put the model to use. How
 * many were left out, because the new model doubts them: what somebody confirmed against one model says nothing about
 * another. Tried again, it goes on where it was.
 */
async function keepModel(film: string, model: string, earlier: Study | undefined): Promise<number> {
  const left = earlier && earlier.model !== model ? await carryCorrections(film, model, earlier) : 0;
  await unwrap(client.POST("/api/v1/models/{model}/use", { params: { path: { model } } }));
  return left;
}

async function carryCorrections(film: string, model: string, earlier: Study): Promise<number> {
  if (earlier.corrections.length === 0) return 0;
  const params = { path: { study: earlier.id } };
  const steps = await unwrap(client.GET("/api/v1/studies/{study}/history", { params }));
  let study = await unwrap(client.POST("/api/v1/studies", { body: { film, model } }));
  let left = 0;
  for (const correction of earlier.corrections) {
    if (study.corrections.some((there) => isAlikeOld(there, correction))) continue;
    const request = requestFor(correction, steps);
    try {
      if (request) study = await postStep(study, request);
      else left++;
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "concept_mismatch") throw error;
      left++;
    }
  }
  return left;
}

/** The step that says the same again; null for what speaks of every finding, which now are others. */
function requestFor(correction: Correction, steps: readonly Step[]): StepRequest | null {
  const { box, concept, kind } = correction;
  if (!concept) return null;
  if (!box) return { kind: "reject", concept };
  const reason =
    steps.findLast((step) => STATED.has(step.kind) && isAlikeOld(step.correction, correction))?.reason ??
    null;
  return { kind: "box", statement: { box, concept, positive: kind === "box" }, confirmed: false, reason };
}

const STATED = new Set(["corrected", "redrawn"]);

function isAlikeOld(a: Correction, b: Correction): boolean {
  if (a.kind !== b.kind || a.concept !== b.concept) return false;
  return a.box === null || b.box === null ? a.box === b.box : isSameBox(a.box, b.box);
}
