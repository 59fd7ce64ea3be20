/** Jobs that measure models on validation films. They continue when the user opens another screen. */
import { client, unwrap } from "../api/client";
import { isTemporary } from "../api/problems";
import type { Job } from "../api/types";
import { createStore } from "../lib/store";

export interface MeasurementJob {
  /** null until the server has accepted the job. */
  serverJob: Job | null;
  error: unknown;
}

export const measurementJobs = createStore<Record<string, MeasurementJob>>({});
const POLL_INTERVAL = 500;
const FINAL_STATES: readonly Job["state"][] = ["done", "failed", "cancelled"];

export function isRunning(job: MeasurementJob | undefined): boolean {
  return (
    job !== undefined &&
    job.error === null &&
    (job.serverJob === null || !FINAL_STATES.includes(job.serverJob.state))
  );
}

/** Measure a model; does nothing if it is being measured already. */
export async function measureModel(model: string): Promise<void> {
  if (isRunning(measurementJobs.get()[model])) return;
  setJob(model, { serverJob: null, error: null });
  try {
    const started = await unwrap(
      client.POST("/api/v1/models/{model}/worth", { params: { path: { model } } }),
    );
    setJob(model, { serverJob: started, error: null });
    for (let serverJob = started; !FINAL_STATES.includes(serverJob.state);) {
      await wait();
      serverJob = await refreshJob(serverJob);
      setJob(model, { serverJob, error: null });
    }
  } catch (error) {
    setJob(model, { serverJob: null, error });
  }
}

async function refreshJob(job: Job): Promise<Job> {
  try {
    return await unwrap(client.GET("/api/v1/jobs/{job}", { params: { path: { job: job.id } } }));
  } catch (error) {
    // The job is stored on the server: after a temporary error, ask again.
    if (isTemporary(error)) return job;
    throw error;
  }
}

function wait(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL));
}

function setJob(model: string, job: MeasurementJob): void {
  measurementJobs.set((current) => ({ ...current, [model]: job }));
}
