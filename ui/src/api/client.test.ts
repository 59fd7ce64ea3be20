import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { cut, leave, READER, refused, seat, serve, serveInTurn, told as answer } from "../test/server";
import { client, reach, told } from "./client";
import { connection } from "./connection";
import { Problem, Unreachable } from "./problems";
import { begin, session } from "./session";

const HERE = `${window.location.origin}/api/v1/films`;
const get = () => new Request(HERE);
const post = (init: RequestInit = {}) =>
  new Request(HERE, { method: "POST", body: `{"film":"f1"}`, ...init });
const caught = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => new Error("It was answered."),
    (error: unknown) => error,
  );

beforeEach(() => {
  vi.useFakeTimers();
  seat();
});

afterEach(() => {
  leave();
  vi.useRealTimers();
});

describe("the token against forged requests", () => {
  test("goes along with whatever changes something", async () => {
    const asked = serve(() => answer({}));
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) await reach(new Request(HERE, { method }));
    expect(asked.map((one) => one.csrf)).toEqual(["token-1", "token-1", "token-1", "token-1"]);
  });

  test("stays at home when one only looks", async () => {
    const asked = serve(() => answer({}));
    for (const method of ["GET", "HEAD"]) await reach(new Request(HERE, { method }));
    expect(asked.map((one) => one.csrf)).toEqual([null, null]);
  });
});

describe("a session that ended", () => {
  test("is told, and the question waits until somebody logs in, then is asked again as it was", async () => {
    const asked = serveInTurn(
      () => refused(401, "login_needed"),
      () => answer({ done: true }),
    );
    const waiting = reach(post());
    await vi.waitFor(() => expect(session.get().ended).toBe(true));
    expect(asked).toHaveLength(1);

    begin({ ...READER, csrf: "token-2" });

    expect(await (await waiting).json()).toEqual({ done: true });
    expect(asked.map((one) => one.csrf)).toEqual(["token-1", "token-2"]);
    expect(asked[1]?.body).toEqual({ film: "f1" });
    expect(session.get().ended).toBe(false);
  });

  test("lets everything that waited go on at once", async () => {
    let loggedIn = false;
    serve(() => (loggedIn ? answer({}) : refused(401, "login_needed")));
    const waiting = Promise.all([reach(get()), reach(post()), reach(get())]);
    await vi.waitFor(() => expect(session.get().ended).toBe(true));
    await vi.advanceTimersByTimeAsync(10);
    loggedIn = true;
    begin(READER);
    expect((await waiting).map((one) => one.ok)).toEqual([true, true, true]);
  });
});

describe("a token that another window made old", () => {
  test("is fetched anew once, and the question asked again with it", async () => {
    const asked = serve(({ path, csrf }) => {
      if (path === "/api/v1/session/me") return answer({ ...READER, csrf: "token-2" });
      return csrf === "token-2" ? answer({}) : refused(403, "csrf");
    });
    await reach(post());
    expect(asked.map(({ method, path, csrf }) => [method, path, csrf])).toEqual([
      ["POST", "/api/v1/films", "token-1"],
      ["GET", "/api/v1/session/me", null],
      ["POST", "/api/v1/films", "token-2"],
    ]);
  });

  test("is not fetched for ever: a second refusal is told", async () => {
    const asked = serve(({ path }) =>
      path === "/api/v1/session/me" ? answer(READER) : refused(403, "csrf"),
    );
    expect(await caught(reach(post()))).toMatchObject({ status: 403, code: "csrf" });
    expect(asked).toHaveLength(3);
  });

  test("and a line cut just then count as nobody answering, so that the step is tried again", async () => {
    serveInTurn(() => refused(403, "csrf"), cut);
    expect(await caught(reach(post()))).toBeInstanceOf(Unreachable);
  });
});

describe("a server that does not answer", () => {
  test("is told as such, and the page knows that the connection is lost", async () => {
    serve(cut);
    expect(await caught(reach(get()))).toBeInstanceOf(Unreachable);
    expect(connection.get().lost).toBe(true);
  });

  test("is knocked at every second until it is back", async () => {
    const asked = serveInTurn(
      cut,
      cut,
      () => refused(503, "busy"),
      () => answer({}),
    );
    await caught(reach(post()));
    await vi.advanceTimersByTimeAsync(2500);
    expect(connection.get().lost).toBe(true);
    await vi.advanceTimersByTimeAsync(1000);
    expect(connection.get().lost).toBe(false);
    expect(asked.slice(1).map((one) => one.path)).toEqual(Array(3).fill("/api/v1/health"));
    await vi.advanceTimersByTimeAsync(5000);
    expect(asked).toHaveLength(4);
  });

  test("is back as soon as anything is answered", async () => {
    serveInTurn(cut, () => answer({}));
    await caught(reach(get()));
    await reach(get());
    expect(connection.get().lost).toBe(false);
  });

  test("is not blamed for a question that the page itself took back", async () => {
    serve(cut);
    const taken = new AbortController();
    taken.abort();
    const error = await caught(reach(new Request(HERE, { signal: taken.signal })));
    expect(error).not.toBeInstanceOf(Unreachable);
    expect(connection.get().lost).toBe(false);
  });
});

describe("a refusal", () => {
  test("comes with its code, what is wrong, what the model sees and when to come again", async () => {
    const check = { claimed: "cavity", rival: "effusion", mismatch: true };
    serve(() => refused(409, "concept_mismatch", { check }, { "Retry-After": "7" }));
    const problem = await caught(reach(post()));
    expect(problem).toBeInstanceOf(Problem);
    expect(problem).toMatchObject({
      status: 409,
      code: "concept_mismatch",
      detail: "Refused: concept_mismatch.",
      message: "Refused: concept_mismatch.",
      check,
      retryAfter: 7,
    });
  });

  test("is one even where a proxy in between answers with a page", async () => {
    serve(() => new Response("<h1>Bad gateway</h1>", { status: 502, statusText: "Bad Gateway" }));
    expect(await caught(reach(get()))).toMatchObject({
      status: 502,
      code: "refused",
      detail: "Bad Gateway",
      check: null,
      retryAfter: null,
    });
  });

  test("that names a date to come again names no seconds", async () => {
    serve(() => refused(503, "busy", {}, { "Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT" }));
    expect(await caught(reach(get()))).toMatchObject({ retryAfter: null });
  });

  test("shows that the server is there", async () => {
    serve(() => refused(404, "not_found"));
    await caught(reach(get()));
    expect(connection.get().lost).toBe(false);
  });
});

describe("what was told", () => {
  test("comes without its wrapping", async () => {
    serve(() => answer([{ version: "m1" }]));
    expect(await told(client.GET("/api/v1/models"))).toEqual([{ version: "m1" }]);
  });

  test("may be nothing where nothing was to be told, and nowhere else", async () => {
    expect(await told(Promise.resolve({ response: new Response(null, { status: 204 }) }))).toBeUndefined();
    const empty = told(Promise.resolve({ response: new Response(null, { status: 200 }) }));
    expect(await caught(empty)).toBeInstanceOf(Problem);
  });
});
