import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { client, told } from "../api/client";
import { modelsQuery } from "../api/queries";
import type { Correction, Step, Study } from "../api/types";
import { sameBox } from "../film/box";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { useSitting } from "../reading/sitting";
import { taken } from "../reading/steps";
import { useWords } from "../words/words";
import { lesson, NOTHING } from "./lesson";

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
    onSuccess: () => {
      over();
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

/** Put the model to use, and take the corrections of the earlier study over, in their order and with their reasons. */
async function keep(film: string, model: string, earlier: Study | undefined): Promise<void> {
  await told(client.POST("/api/v1/models/{model}/use", { params: { path: { model } } }));
  if (!earlier || earlier.corrections.length === 0) return;
  const params = { path: { study: earlier.id } };
  const steps = await told(client.GET("/api/v1/studies/{study}/history", { params }));
  let study = await told(client.POST("/api/v1/studies", { body: { film, model } }));
  for (const one of earlier.corrections) {
    if (one.kind === "reject" && one.concept)
      study = await taken(study, { kind: "reject", concept: one.concept });
    if (!one.box || !one.concept) continue;
    const said = { box: one.box, concept: one.concept, positive: one.kind === "box" };
    study = await taken(study, {
      kind: "box",
      said,
      confirmed: one.confirmed,
      reason: reasonFor(one, steps),
    });
  }
}

/** What was given when it was last said so. */
function reasonFor(one: Correction, steps: readonly Step[]): string | null {
  const same = ({ kind, correction }: Step) =>
    (kind === "corrected" || kind === "redrawn") &&
    correction.concept === one.concept &&
    correction.kind === one.kind &&
    correction.box !== null &&
    one.box !== null &&
    sameBox(correction.box, one.box);
  return steps.findLast(same)?.reason ?? null;
}
