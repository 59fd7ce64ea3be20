/** Models that are being measured. It goes on whatever somebody looks at meanwhile. */
import { client, told } from "../api/client";
import { passes } from "../api/problems";
import type { Job } from "../api/types";
import { createStore } from "../parts/store";

export interface Measuring {
  /** null until the server has taken the job on. */
  job: Job | null;
  error: unknown;
}

export const measurings = createStore<Record<string, Measuring>>({});
const LOOK_EVERY = 500;
const ENDED: readonly Job["state"][] = ["done", "failed", "cancelled"];

export function isUnderWay(one: Measuring | undefined): boolean {
  return one !== undefined && one.error === null && (one.job === null || !ENDED.includes(one.job.state));
}

/** Measures a model, once at a time. */
export async function measure(model: string): Promise<void> {
  if (isUnderWay(measurings.get()[model])) return;
  note(model, { job: null, error: null });
  try {
    const started = await told(client.POST("/api/v1/models/{model}/worth", { params: { path: { model } } }));
    note(model, { job: started, error: null });
    for (let job = started; !ENDED.includes(job.state);) {
      await rest();
      job = await looked(job);
      note(model, { job, error: null });
    }
  } catch (error) {
    note(model, { job: null, error });
  }
}

async function looked(job: Job): Promise<Job> {
  try {
    return await told(client.GET("/api/v1/jobs/{job}", { params: { path: { job: job.id } } }));
  } catch (error) {
    // A server that is away for a moment comes back, and the job is told of in its database.
    if (passes(error)) return job;
    throw error;
  }
}

function rest(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, LOOK_EVERY));
}

function note(model: string, what: Measuring): void {
  measurings.set((now) => ({ ...now, [model]: what }));
}
