/** Films on their way in. The queue knows nothing of screens, so that it goes on whatever somebody looks at. */
import { createStore, type Store } from "../parts/store";
import type { Answer, Send, Sending } from "./sending";

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
  /** Share of the file that was sent. */
  sent: number;
  film: string | null;
  /** Why it was refused: the server's code and its sentence. */
  code: string;
  detail: string;
}

/** What the queue needs of the world around it; tests give it a world of their own. */
export interface Surroundings {
  send: Send;
  /** Notes that nobody answered, and resolves as soon as somebody does. */
  back: () => Promise<void>;
  loggedIn: () => Promise<void>;
  /** Another window logged in, so the token is another one. */
  meetAgain: () => Promise<void>;
  rest: (attempt: number, retryAfter: number | null) => Promise<void>;
}

export interface UploadQueue {
  uploads: Store<readonly Upload[]>;
  add: (files: readonly File[]) => void;
  /** Takes what has ended off the list. */
  clear: () => void;
  /** Stops whatever has not ended. */
  stop: () => void;
}

const AT_ONCE = 2;
const ENDED: readonly UploadState[] = ["done", "known", "refused", "unreadable", "stopped"];
const LATER = [429, 502, 503, 504];

export function hasEnded(upload: Upload): boolean {
  return ENDED.includes(upload.state);
}

export function createQueue(world: Surroundings): UploadQueue {
  const uploads = createStore<readonly Upload[]>([]);
  const files = new Map<number, File>();
  const underWay = new Map<number, Sending>();
  let count = 0;
  let busy = 0;

  const now = (id: number) => uploads.get().find((one) => one.id === id);
  const change = (id: number, what: Partial<Upload>) =>
    uploads.set((all) => all.map((one) => (one.id === id && !hasEnded(one) ? { ...one, ...what } : one)));

  function next(): void {
    while (busy < AT_ONCE) {
      const upload = uploads.get().find((one) => one.state === "waiting");
      const file = upload && files.get(upload.id);
      if (!upload || !file) return;
      busy += 1;
      change(upload.id, { state: "sending" });
      void bring(upload.id, file).finally(() => {
        files.delete(upload.id);
        busy -= 1;
        next();
      });
    }
  }

  async function bring(id: number, file: File): Promise<void> {
    // A file that is gone, or a folder, looks to the request just like a server that is gone.
    if (!(await isReadable(file))) {
      change(id, { state: "unreadable" });
      return;
    }
    for (let attempt = 0; ; attempt++) {
      const upload = now(id);
      if (!upload || hasEnded(upload)) return;
      change(id, { state: "sending", sent: 0 });
      const answer = await sent(id, file);
      if (await settled(id, answer, attempt)) return;
    }
  }

  function sent(id: number, file: File): Promise<Answer> {
    const sending = world.send(file, (share) =>
      change(id, { sent: share, state: share < 1 ? "sending" : "reading" }),
    );
    underWay.set(id, sending);
    return sending.answer.finally(() => underWay.delete(id));
  }

  /** Whether that was the last word on it; else what kept it from being so has passed by now. */
  async function settled(id: number, answer: Answer, attempt: number): Promise<boolean> {
    if (answer.kind === "taken") {
      change(id, { state: answer.taken.known ? "known" : "done", sent: 1, film: answer.taken.film.id });
      return true;
    }
    if (answer.kind === "stopped") {
      change(id, { state: "stopped" });
      return true;
    }
    if (answer.kind === "silence") {
      change(id, { state: "paused", sent: 0 });
      await world.back();
      return false;
    }
    return !(await passed(id, answer, attempt));
  }

  async function passed(
    id: number,
    answer: Extract<Answer, { kind: "refused" }>,
    attempt: number,
  ): Promise<boolean> {
    if (answer.code === "login_needed") {
      change(id, { state: "login", sent: 0 });
      await world.loggedIn();
      return true;
    }
    if (answer.code === "csrf" && attempt === 0) {
      await world.meetAgain();
      return true;
    }
    if (LATER.includes(answer.status)) {
      change(id, { state: "paused", sent: 0 });
      await world.rest(attempt, answer.retryAfter);
      return true;
    }
    change(id, { state: "refused", code: answer.code, detail: answer.detail });
    return false;
  }

  return {
    uploads,
    add: (added) => {
      const fresh = added.map((file) => {
        const id = ++count;
        files.set(id, file);
        return { id, name: file.name, state: "waiting", sent: 0, film: null, code: "", detail: "" } as const;
      });
      uploads.set((all) => [...all, ...fresh]);
      next();
    },
    clear: () => uploads.set((all) => all.filter((one) => !hasEnded(one))),
    stop: () => {
      uploads.set((all) => all.map((one) => (hasEnded(one) ? one : { ...one, state: "stopped" })));
      for (const sending of underWay.values()) sending.stop();
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
