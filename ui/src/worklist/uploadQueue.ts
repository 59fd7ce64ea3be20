/** Queue of film uploads. It does not depend on any screen, so uploads continue when the user opens another one. */
import { createStore, type Store } from "../lib/store";
import type { SendFilm, UploadRequest, UploadResult } from "./uploadRequest";

export type UploadState =
  | "waiting"
  | "sending"
  | "reading"
  | "paused"
  | "login"
  | "done"
  | "known"
  | "refused"
  | "unreadable"
  | "stopped";

export interface Upload {
  id: number;
  name: string;
  state: UploadState;
  /** Fraction of the file that was sent. */
  sentShare: number;
  film: string | null;
  /** Why it was refused: the server's error code and message. */
  code: string;
  detail: string;
}

/** What the queue needs from its environment; tests replace it. */
export interface QueueEnvironment {
  send: SendFilm;
  /** Report that the server did not answer; resolves when it answers again. */
  untilReachable: () => Promise<void>;
  untilLoggedIn: () => Promise<void>;
  /** Another window logged in, so the token is another one. */
  refreshCsrfToken: () => Promise<void>;
  waitBeforeRetry: (attempt: number, retryAfter: number | null) => Promise<void>;
}

export interface UploadQueue {
  uploads: Store<readonly Upload[]>;
  add: (files: readonly File[]) => void;
  /** Remove finished uploads from the list. */
  clear: () => void;
  /** Stop all unfinished uploads. */
  stop: () => void;
}

const CONCURRENT_UPLOADS = 2;
const FINAL_STATES: readonly UploadState[] = ["done", "known", "refused", "unreadable", "stopped"];
const RETRY_STATUSES = [429, 502, 503, 504];

export function isFinished(upload: Upload): boolean {
  return FINAL_STATES.includes(upload.state);
}

export function createUploadQueue(environment: QueueEnvironment): UploadQueue {
  const uploads = createStore<readonly Upload[]>([]);
  const files = new Map<number, File>();
  const activeRequests = new Map<number, UploadRequest>();
  let count = 0;
  let active = 0;

  const find = (id: number) => uploads.get().find((upload) => upload.id === id);
  const change = (id: number, changes: Partial<Upload>) =>
    uploads.set((all) =>
      all.map((upload) => (upload.id === id && !isFinished(upload) ? { ...upload, ...changes } : upload)),
    );

  function startNext(): void {
    while (active < CONCURRENT_UPLOADS) {
      const upload = uploads.get().find((upload) => upload.state === "waiting");
      const file = upload && files.get(upload.id);
      if (!upload || !file) return;
      active += 1;
      change(upload.id, { state: "sending" });
      void uploadFile(upload.id, file).finally(() => {
        files.delete(upload.id);
        active -= 1;
        startNext();
      });
    }
  }

  async function uploadFile(id: number, file: File): Promise<void> {
    // For XMLHttpRequest, a deleted file or a folder looks like an unreachable server. Check it first.
    if (!(await isReadable(file))) {
      change(id, { state: "unreadable" });
      return;
    }
    for (let attempt = 0; ; attempt++) {
      const upload = find(id);
      if (!upload || isFinished(upload)) return;
      change(id, { state: "sending", sentShare: 0 });
      const result = await send(id, file);
      if (await handleResult(id, result, attempt)) return;
    }
  }

  function send(id: number, file: File): Promise<UploadResult> {
    const request = environment.send(file, (share) =>
      change(id, { sentShare: share, state: share < 1 ? "sending" : "reading" }),
    );
    activeRequests.set(id, request);
    return request.result.finally(() => activeRequests.delete(id));
  }

  /** Returns whether the upload is finished. If not, waits until it can be tried again. */
  async function handleResult(id: number, result: UploadResult, attempt: number): Promise<boolean> {
    if (result.kind === "taken") {
      change(id, {
        state: result.upload.known ? "known" : "done",
        sentShare: 1,
        film: result.upload.film.id,
      });
      return true;
    }
    if (result.kind === "stopped") {
      change(id, { state: "stopped" });
      return true;
    }
    if (result.kind === "silence") {
      change(id, { state: "paused", sentShare: 0 });
      await environment.untilReachable();
      return false;
    }
    return !(await retryAfterRefusal(id, result, attempt));
  }

  async function retryAfterRefusal(
    id: number,
    result: Extract<UploadResult, { kind: "refused" }>,
    attempt: number,
  ): Promise<boolean> {
    if (result.code === "login_needed") {
      change(id, { state: "login", sentShare: 0 });
      await environment.untilLoggedIn();
      return true;
    }
    if (result.code === "csrf" && attempt === 0) {
      await environment.refreshCsrfToken();
      return true;
    }
    if (RETRY_STATUSES.includes(result.status)) {
      change(id, { state: "paused", sentShare: 0 });
      await environment.waitBeforeRetry(attempt, result.retryAfter);
      return true;
    }
    change(id, { state: "refused", code: result.code, detail: result.detail });
    return false;
  }

  return {
    uploads,
    add: (added) => {
      const newUploads = added.map((file) => {
        const id = ++count;
        files.set(id, file);
        return {
          id,
          name: file.name,
          state: "waiting",
          sentShare: 0,
          film: null,
          code: "",
          detail: "",
        } as const;
      });
      uploads.set((all) => [...all, ...newUploads]);
      startNext();
    },
    clear: () => uploads.set((all) => all.filter((upload) => !isFinished(upload))),
    stop: () => {
      uploads.set((all) =>
        all.map((upload) => (isFinished(upload) ? upload : { ...upload, state: "stopped" })),
      );
      for (const request of activeRequests.values()) request.stop();
    },
  };
}

async function isReadable(file: File): Promise<boolean> {
  try {
    await file.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}
