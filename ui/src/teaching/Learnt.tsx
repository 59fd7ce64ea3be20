import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { client, told } from "../api/client";
import { Problem } from "../api/problems";
import { modelsQuery } from "../api/queries";
import type { Correction, Step, Study } from "../api/types";
import { sameBox } from "../film/box";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { useSitting } from "../reading/sitting";
import { type StepAsked, taken } from "../reading/steps";
import { useWords } from "../words/words";
import { leftBehind, lesson, NOTHING } from "./lesson";

interface Props {
  learnt: { model: string; concept: string };
  onKept: (model: string) => void;
}

/** The new finding's map lies on the film: keep the model that knows it, or discard it. */
export function Learnt({ learnt, onKept }: Props) {
  const words = useWords();
  const { desk, reading } = useSitting();
  const { shown } = useStore(lesson);
  const [carried, setCarried] = useState(true);
  const queries = useQueryClient();
  const seen = useQuery(seenQuery(desk.film, learnt.model));
  const found = seen.data?.concepts.find((one) => one.name === learnt.concept);
  const over = () => {
    void queries.invalidateQueries({ queryKey: modelsQuery.queryKey });
    lesson.set(NOTHING);
  };
  const keeping = useMutation({
    mutationFn: () => keep(desk.film, learnt.model, carried ? reading.study : undefined),
    onSuccess: (left) => {
      over();
      leftBehind.set(left);
      onKept(learnt.model);
    },
  });
  const dropping = useMutation({
    mutationFn: () =>
      told(client.DELETE("/api/v1/models/{model}", { params: { path: { model: learnt.model } } })),
    onSuccess: over,
  });
  const count = reading.study?.corrections.length ?? 0;
  const busy = keeping.isPending || dropping.isPending;
  return (
    <div className="stack">
      <p role="status">{words.teaching.learntAbout}</p>
      {found && <p>{words.teaching.onThisFilm(words.reading.words[found.words] ?? found.words)}</p>}
      <button
        type="button"
        aria-pressed={shown}
        onClick={() => lesson.set((now) => ({ ...now, shown: !shown }))}
      >
        {shown ? words.teaching.hideMap : words.teaching.showMap}
      </button>
      {count > 0 && (
        <label className="row">
          <input type="checkbox" checked={carried} onChange={(event) => setCarried(event.target.checked)} />
          {words.teaching.carry(count)}
        </label>
      )}
      {(keeping.isError || dropping.isError) && <Trouble error={keeping.error ?? dropping.error} />}
      <div className="row end">
        <button type="button" disabled={busy} onClick={() => dropping.mutate()}>
          {words.teaching.drop}
        </button>
        <button type="button" className="primary" disabled={busy} onClick={() => keeping.mutate()}>
          {words.teaching.keep}
        </button>
      </div>
    </div>
  );
}

const seenQuery = (film: string, model: string) => ({
  queryKey: ["seen", film, model],
  queryFn: () =>
    told(client.GET("/api/v1/films/{film}/explanation", { params: { path: { film }, query: { model } } })),
  staleTime: Infinity,
});

/**
 * Take the corrections of the earlier study over, in their order and with their reasons, then put the model to use. How
 * many were left out, because the new model doubts them: what somebody confirmed against one model says nothing about
 * another. Tried again, it goes on where it was.
 */
async function keep(film: string, model: string, earlier: Study | undefined): Promise<number> {
  const left = earlier && earlier.model !== model ? await carried(film, model, earlier) : 0;
  await told(client.POST("/api/v1/models/{model}/use", { params: { path: { model } } }));
  return left;
}

async function carried(film: string, model: string, earlier: Study): Promise<number> {
  if (earlier.corrections.length === 0) return 0;
  const params = { path: { study: earlier.id } };
  const steps = await told(client.GET("/api/v1/studies/{study}/history", { params }));
  let study = await told(client.POST("/api/v1/studies", { body: { film, model } }));
  let left = 0;
  for (const one of earlier.corrections) {
    if (study.corrections.some((there) => isAlike(there, one))) continue;
    const asked = asStep(one, steps);
    try {
      if (asked) study = await taken(study, asked);
      else left++;
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "concept_mismatch") throw error;
      left++;
    }
  }
  return left;
}

/** The step that says the same again; null for what speaks of every finding, which now are others. */
function asStep(one: Correction, steps: readonly Step[]): StepAsked | null {
  const { box, concept, kind } = one;
  if (!concept) return null;
  if (!box) return { kind: "reject", concept };
  const reason =
    steps.findLast((step) => SAID.has(step.kind) && isAlike(step.correction, one))?.reason ?? null;
  return { kind: "box", said: { box, concept, positive: kind === "box" }, confirmed: false, reason };
}

const SAID = new Set(["corrected", "redrawn"]);

function isAlike(one: Correction, other: Correction): boolean {
  if (one.kind !== other.kind || one.concept !== other.concept) return false;
  return one.box === null || other.box === null ? one.box === other.box : sameBox(one.box, other.box);
}
