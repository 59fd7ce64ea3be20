import { expect, test, vi } from "vitest";

import type { FilmTaken } from "../api/types";
import { createQueue, type Surroundings } from "./queue";
import type { Answer } from "./sending";

const file = (name: string) => new File(["film"], name);
const taken = (known = false): Answer => ({
  kind: "taken",
  taken: { known, film: { id: "f1" } } as FilmTaken,
});
const refused = (status: number, code: string): Answer => ({
  kind: "refused",
  status,
  code,
  detail: `because of ${code}`,
  retryAfter: null,
});

/** A server that gives one answer after another, and a hand that lets it answer. */
function scene(answers: Answer[], world: Partial<Surroundings> = {}) {
  const sent: string[] = [];
  const waiting: (() => void)[] = [];
  const queue = createQueue({
    send: (one, onSent) => {
      sent.push(one.name);
      onSent(1);
      const answer = new Promise<Answer>((resolve) =>
        waiting.push(() => resolve(answers.shift() ?? { kind: "silence" })),
      );
      return { answer, stop: () => waiting.splice(0).forEach((go) => go()) };
    },
    back: () => Promise.resolve(),
    loggedIn: () => Promise.resolve(),
    meetAgain: () => Promise.resolve(),
    rest: () => Promise.resolve(),
    ...world,
  });
  const states = () => queue.uploads.get().map((one) => one.state);
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

test("a film that was here before is told as known", async () => {
  const { queue, states, answer } = scene([taken(true)]);
  queue.add([file("a")]);
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["known"]));
  expect(queue.uploads.get()[0]?.film).toBe("f1");
});

test("a refusal keeps the server's sentence and is not tried again", async () => {
  const { queue, sent, states, answer } = scene([refused(422, "film_refused")]);
  queue.add([file("a")]);
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["refused"]));
  expect(queue.uploads.get()[0]?.detail).toBe("because of film_refused");
  expect(sent).toEqual(["a"]);
});

test("a server that is gone is waited for, then the film is sent again", async () => {
  let back = () => {};
  const gone = new Promise<void>((resolve) => (back = resolve));
  const { queue, sent, states, answer } = scene([{ kind: "silence" }, taken()], { back: () => gone });
  queue.add([file("a")]);
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["paused"]));
  expect(sent).toEqual(["a"]);
  back();
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["done"]));
  expect(sent).toEqual(["a", "a"]);
});

test("a session that ended is waited for, then the film is sent again", async () => {
  let enter = () => {};
  const login = new Promise<void>((resolve) => (enter = resolve));
  const { queue, states, answer } = scene([refused(401, "login_needed"), taken()], { loggedIn: () => login });
  queue.add([file("a")]);
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["login"]));
  enter();
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["done"]));
});

test("a busy server is asked again after a rest", async () => {
  const rest = vi.fn(() => Promise.resolve());
  const { queue, states, answer } = scene([refused(503, "busy"), taken()], { rest });
  queue.add([file("a")]);
  await answer();
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["done"]));
  expect(rest).toHaveBeenCalledOnce();
});

test("a token of another window is renewed once, then refused for good", async () => {
  const meetAgain = vi.fn(() => Promise.resolve());
  const { queue, states, answer } = scene([refused(403, "csrf"), refused(403, "csrf")], { meetAgain });
  queue.add([file("a")]);
  await answer();
  await answer();
  await vi.waitFor(() => expect(states()).toEqual(["refused"]));
  expect(meetAgain).toHaveBeenCalledOnce();
});

test("a file that cannot be read is never sent", async () => {
  const { queue, sent, states } = scene([]);
  const folder = file("folder");
  folder.slice = () => ({ arrayBuffer: () => Promise.reject(new Error("gone")) }) as unknown as Blob;
  queue.add([folder]);
  await vi.waitFor(() => expect(states()).toEqual(["unreadable"]));
  expect(sent).toEqual([]);
});

test("stopping ends all that has not ended, and clearing leaves nothing of it", async () => {
  const { queue, states } = scene([{ kind: "stopped" }, { kind: "stopped" }]);
  queue.add(["a", "b", "c"].map(file));
  await vi.waitFor(() => expect(states()).toEqual(["reading", "reading", "waiting"]));
  queue.stop();
  expect(states()).toEqual(["stopped", "stopped", "stopped"]);
  queue.clear();
  expect(states()).toEqual([]);
});
