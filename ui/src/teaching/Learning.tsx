import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";

import { client, told } from "../api/client";
import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";
import { lesson } from "./lesson";

const LOOK_EVERY = 250;

/** The model learns; how far it is, and why not if it cannot. */
export function Learning({ job }: { job: string }) {
  const words = useWords();
  const followed = useQuery({
    queryKey: ["job", job],
    queryFn: () => told(client.GET("/api/v1/jobs/{job}", { params: { path: { job } } })),
    refetchInterval: LOOK_EVERY,
  });
  const stopping = useMutation({
    mutationFn: () => told(client.POST("/api/v1/jobs/{job}/cancel", { params: { path: { job } } })),
  });
  const told_ = followed.data;
  useEffect(() => {
    const result = told_?.result as { model?: string; concept?: string } | null | undefined;
    const { model, concept } = result ?? {};
    if (told_?.state === "done" && model && concept)
      lesson.set((now) => ({ ...now, job: null, learnt: { model, concept } }));
  }, [told_]);
  const over = told_?.state === "failed" || told_?.state === "cancelled";
  const trouble = followed.error ?? stopping.error;
  return (
    <div className="stack">
      {over ? (
        <p role="alert" className="verdict warned">
          {words.teaching.failed(told_.news)}
        </p>
      ) : (
        <>
          <p role="status">{words.teaching.learning}</p>
          <progress value={told_?.progress ?? 0} max={1} aria-label={words.teaching.learning} />
        </>
      )}
      {trouble && <Trouble error={trouble} />}
      <div className="row end">
        {over || followed.isError ? (
          <button type="button" onClick={() => lesson.set((now) => ({ ...now, job: null }))}>
            {words.common.again}
          </button>
        ) : (
          <button type="button" disabled={stopping.isPending} onClick={() => stopping.mutate()}>
            {words.teaching.stop}
          </button>
        )}
      </div>
    </div>
  );
}
