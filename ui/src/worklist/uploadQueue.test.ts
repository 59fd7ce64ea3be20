import { expect, test, vi } from "vitest";

import type { UploadedFilm } from "../api/types";
import { createUploadQueue, type QueueEnvironment } from "./uploadQueue";
import type { UploadResult } from "./uploadRequest";

const file = (name: string) => new File(["film"], name);
const taken = (known = false): UploadResult => ({
  kind: "taken",
  upload: { known, film: { id: "f1" } } as UploadedFilm,
});
const refused = (status: number, code: string): UploadResult => ({
  kind: "refused",
  status,
  code,
  detail: `because of ${code}`,
  retryAfter: null,
});

/** A queue whose uploads get the given results, one at each call of `answer`. */
function scene(answers: UploadResult[], world: Partial<QueueEnvironment> = {}) {
  const sent: string[] = [];
  const waiting: (() => void)[] = [];
  const queue = createUploadQueue({
    send: (file, onSent) => {
      sent.push(file.name);
      onSent(1);
      const result = new Promise<UploadResult>((resolve) =>
        waiting.push(() => resolve(answers.shift() ?? { kind: "silence" })),
      );
      return { result, stop: () => waiting.splice(0).forEach((go) => go()) };
    },
    untilReachable: () => Promise.resolve(),
    untilLoggedIn: () => Promise.resolve(),
    refreshCsrfToken: () => Promise.resolve(),
    waitBeforeRetry: () => Promise.resolve(),
    ...world,
  });
  const states = () => queue.uploads.get().map((upload) => upload.state);
  const answer = async () => {
    await vi.waitFor(() => expect(waiting.length).toBeGreaterThan(0));
    waiting.shift()?.();
  };
  return { queue, sent, states, answer };
}

test("two films are sent at a time, the others wait", async () => {
  const { queue, sent, states, answer } = scene([taken(), taken(), taken()]);
  queue.add(["a", "b", "c"].map(file));
  await vi.waitFor(() => expect(states()).toEqual(["reading", "reading", "waiting"]));
  await answer();
  await vi.waitFor(() => expect(sent).toEqual(["a", "b", "c"]));
});

test("a film that is already on the server is marked as known", async () => {
  const { queue, states, answer } = scene([taken(true)]);
  queue.add([file("a")]);
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["known"]));
  expect(queue.uploads.get()[0]?.film).toBe("f1");
});

test("a refusal keeps the server's message and is not tried again", async () => {
  const { queue, sent, states, answer } = scene([refused(422, "film_refused")]);
  queue.add([file("a")]);
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["refused"]));
  expect(queue.uploads.get()[0]?.detail).toBe("because of film_refused");
  expect(sent).toEqual(["a"]);
});

test("after the server is reachable again, the film is sent again", async () => {
  let back = () => {};
  const gone = new Promise<void>((resolve) => (back = resolve));
  const { queue, sent, states, answer } = scene([{ kind: "silence" }, taken()], {
    untilReachable: () => gone,
  });
  queue.add([file("a")]);
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["paused"]));
  expect(sent).toEqual(["a"]);
  back();
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["done"]));
  expect(sent).toEqual(["a", "a"]);
});

test("after a login, the film is sent again", async () => {
  let enter = () => {};
  const login = new Promise<void>((resolve) => (enter = resolve));
  const { queue, states, answer } = scene([refused(401, "login_needed"), taken()], {
    untilLoggedIn: () => login,
  });
  queue.add([file("a")]);
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["login"]));
  enter();
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["done"]));
});

test("a busy server is tried again after a delay", async () => {
  const waitBeforeRetry = vi.fn(() => Promise.resolve());
  const { queue, states, answer } = scene([refused(503, "busy"), taken()], { waitBeforeRetry });
  queue.add([file("a")]);
  await answer();
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["done"]));
  expect(waitBeforeRetry).toHaveBeenCalledOnce();
});

test("an outdated CSRF token is renewed once, then the upload is refused", async () => {
  const refreshCsrfToken = vi.fn(() => Promise.resolve());
  const { queue, states, answer } = scene([refused(403, "csrf"), refused(403, "csrf")], { refreshCsrfToken });
  queue.add([file("a")]);
  await answer();
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["refused"]));
  expect(refreshCsrfToken).toHaveBeenCalledOnce();
});

test("a file that cannot be read is never sent", async () => {
  const { queue, sent, states } = scene([]);
  const folder = file("folder");
  folder.slice = () => ({ arrayBuffer: () => Promise.reject(new Error("gone")) }) as unknown as Blob;
  queue.add([folder]);
  await vi.waitFor(() => expect(states()).toEqual(["unreadable"]));
  expect(sent).toEqual([]);
});

test("stopping ends all unfinished uploads, and clearing removes them", async () => {
  const { queue, states } = scene([{ kind: "stopped" }, { kind: "stopped" }]);
  queue.add(["a", "b", "c"].map(file));
  await vi.waitFor(() => expect(states()).toEqual(["reading", "reading", "waiting"]));
  queue.stop();
  expect(states()).toEqual(["stopped", "stopped", "stopped"]);
  queue.clear();
  expect(states()).toEqual([]);
});
