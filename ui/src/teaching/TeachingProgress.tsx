import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";

import { client, unwrap } from "../api/client";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { teachingState } from "./teachingState";

const POLL_INTERVAL = 250;

/** Progress of the teaching job, and its error if it fails. */
export function TeachingProgress({ job }: { job: string }) {
  const words = useWords();
  const jobQuery = useQuery({
    queryKey: ["job", job],
    queryFn: () => unwrap(client.GET("/api/v1/jobs/{job}", { params: { path: { job } } })),
    refetchInterval: POLL_INTERVAL,
  });
  const cancelMutation = useMutation({
    mutationFn: () => unwrap(client.POST("/api/v1/jobs/{job}/cancel", { params: { path: { job } } })),
  });
  const currentJob = jobQuery.data;
  useEffect(() => {
    const result = currentJob?.result as { model?: string; concept?: string } | null | undefined;
    const { model, concept } = result ?? {};
    if (currentJob?.state === "done" && model && concept)
      teachingState.set((current) => ({ ...current, job: null, learnt: { model, concept } }));
  }, [currentJob]);
  const hasFailed = currentJob?.state === "failed" || currentJob?.state === "cancelled";
  const error = jobQuery.error ?? cancelMutation.error;
  return (
    <div className="stack">
      {hasFailed ? (
        <p role="alert" className="verdict warned">
          {words.teaching.failed(currentJob.news)}
        </p>
      ) : (
        <>
          <p role="status">{words.teaching.learning}</p>
          <progress value={currentJob?.progress ?? 0} max={1} aria-label={words.teaching.learning} />
        </>
      )}
      {error && <ErrorMessage error={error} />}
      <div className="row end">
        {hasFailed || jobQuery.isError ? (
          <button type="button" onClick={() => teachingState.set((current) => ({ ...current, job: null }))}>
            {words.common.retry}
          </button>
        ) : (
          <button type="button" disabled={cancelMutation.isPending} onClick={() => cancelMutation.mutate()}>
            {words.teaching.stop}
          </button>
        )}
      </div>
    </div>
  );
}
