import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import {
  networkError,
  reset,
  READER,
  problemResponse,
  logIn,
  serve,
  serveInTurn,
  jsonResponse,
} from "../test/fakeServer";
import { client, send, unwrap } from "./client";
import { connection } from "./serverConnection";
import { Problem, Unreachable } from "./problems";
import { startSession, session } from "./session";

const HERE = `${window.location.origin}/api/v1/films`;
const get = () => new Request(HERE);
const post = (init: RequestInit = {}) =>
  new Request(HERE, { method: "POST", body: `{"film":"f1"}`, ...init });
const caught = (request: Promise<unknown>): Promise<unknown> =>
  request.then(
    () => new Error("It was answered."),
    (error: unknown) => error,
  );

beforeEach(() => {
  vi.useFakeTimers();
  logIn();
});

afterEach(() => {
  reset();
  vi.useRealTimers();
});

describe("the token against forged requests", () => {
  test("goes along with whatever changes something", async () => {
    const requests = serve(() => jsonResponse({}));
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) await send(new Request(HERE, { method }));
    expect(requests.map((request) => request.csrf)).toEqual(["token-1", "token-1", "token-1", "token-1"]);
  });

  test("stays at home when one only looks", async () => {
    const requests = serve(() => jsonResponse({}));
    for (const method of ["GET", "HEAD"]) await send(new Request(HERE, { method }));
    expect(requests.map((request) => request.csrf)).toEqual([null, null]);
  });
});

describe("a session that ended", () => {
  test("is told, and the question waits until somebody logs in, then is asked again as it was", async () => {
    const requests = serveInTurn(
      () => problemResponse(401, "login_needed"),
      () => jsonResponse({ done: true }),
    );
    const waiting = send(post());
    await vi.waitFor(() => expect(session.get().expired).toBe(true));
    expect(requests).toHaveLength(1);

    startSession({ ...READER, csrf: "token-2" });

    expect(await (await waiting).json()).toEqual({ done: true });
    expect(requests.map((request) => request.csrf)).toEqual(["token-1", "token-2"]);
    expect(requests[1]?.body).toEqual({ film: "f1" });
    expect(session.get().expired).toBe(false);
  });

  test("lets everything that waited go on at once", async () => {
    let loggedIn = false;
    serve(() => (loggedIn ? jsonResponse({}) : problemResponse(401, "login_needed")));
    const waiting = Promise.all([send(get()), send(post()), send(get())]);
    await vi.waitFor(() => expect(session.get().expired).toBe(true));
    await vi.advanceTimersByTimeAsync(10);
    loggedIn = true;
    startSession(READER);
    expect((await waiting).map((response) => response.ok)).toEqual([true, true, true]);
  });
});

describe("a token that another window made old", () => {
  test("is fetched anew once, and the question asked again with it", async () => {
    const requests = serve(({ path, csrf }) => {
      if (path === "/api/v1/session/me") return jsonResponse({ ...READER, csrf: "token-2" });
      return csrf === "token-2" ? jsonResponse({}) : problemResponse(403, "csrf");
    });
    await send(post());
    expect(requests.map(({ method, path, csrf }) => [method, path, csrf])).toEqual([
      ["POST", "/api/v1/films", "token-1"],
      ["GET", "/api/v1/session/me", null],
      ["POST", "/api/v1/films", "token-2"],
    ]);
  });

  test("is not fetched for ever: a second refusal is told", async () => {
    const requests = serve(({ path }) =>
      path === "/api/v1/session/me" ? jsonResponse(READER) : problemResponse(403, "csrf"),
    );
    expect(await caught(send(post()))).toMatchObject({ status: 403, code: "csrf" });
    expect(requests).toHaveLength(3);
  });

  test("and a line cut just then count as nobody answering, so that the step is tried again", async () => {
    serveInTurn(() => problemResponse(403, "csrf"), networkError);
    expect(await caught(send(post()))).toBeInstanceOf(Unreachable);
  });
});

describe("a server that does not answer", () => {
  test("is told as such, and the page knows that the connection is lost", async () => {
    serve(networkError);
    expect(await caught(send(get()))).toBeInstanceOf(Unreachable);
    expect(connection.get().lost).toBe(true);
  });

  test("is knocked at every second until it is back", async () => {
    const requests = serveInTurn(
      networkError,
      networkError,
      () => problemResponse(503, "busy"),
      () => jsonResponse({}),
    );
    await caught(send(post()));
    await vi.advanceTimersByTimeAsync(2500);
    expect(connection.get().lost).toBe(true);
    await vi.advanceTimersByTimeAsync(1000);
    expect(connection.get().lost).toBe(false);
    expect(requests.slice(1).map((request) => request.path)).toEqual(Array(3).fill("/api/v1/health"));
    await vi.advanceTimersByTimeAsync(5000);
    expect(requests).toHaveLength(4);
  });

  test("is back as soon as anything is answered", async () => {
    serveInTurn(networkError, () => jsonResponse({}));
    await caught(send(get()));
    await send(get());
    expect(connection.get().lost).toBe(false);
  });

  test("is not blamed for a question that the page itself took back", async () => {
    serve(networkError);
    const taken = new AbortController();
    taken.abort();
    const error = await caught(send(new Request(HERE, { signal: taken.signal })));
    expect(error).not.toBeInstanceOf(Unreachable);
    expect(connection.get().lost).toBe(false);
  });
});

describe("a refusal", () => {
  test("comes with its code, what is wrong, what the model sees and when to come again", async () => {
    const check = { claimed: "cavity", rival: "effusion", mismatch: true };
    serve(() => problemResponse(409, "concept_mismatch", { check }, { "Retry-After": "7" }));
    const problem = await caught(send(post()));
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
    expect(await caught(send(get()))).toMatchObject({
      status: 502,
      code: "refused",
      detail: "Bad Gateway",
      check: null,
      retryAfter: null,
    });
  });

  test("that names a date to come again names no seconds", async () => {
    serve(() => problemResponse(503, "busy", {}, { "Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT" }));
    expect(await caught(send(get()))).toMatchObject({ retryAfter: null });
  });

  test("shows that the server is there", async () => {
    serve(() => problemResponse(404, "not_found"));
    await caught(send(get()));
    expect(connection.get().lost).toBe(false);
  });
});

describe("what was told", () => {
  test("comes without its wrapping", async () => {
    serve(() => jsonResponse([{ version: "m1" }]));
    expect(await unwrap(client.GET("/api/v1/models"))).toEqual([{ version: "m1" }]);
  });

  test("may be nothing where nothing was to be told, and nowhere else", async () => {
    expect(await unwrap(Promise.resolve({ response: new Response(null, { status: 204 }) }))).toBeUndefined();
    const empty = unwrap(Promise.resolve({ response: new Response(null, { status: 200 }) }));
    expect(await caught(empty)).toBeInstanceOf(Problem);
  });
});
