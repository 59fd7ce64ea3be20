import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import {
  jsonResponse,
  logIn,
  networkError,
  problemResponse,
  READER,
  reset,
  serve,
  serveInTurn,
} from "../test/fakeServer";
import { client, send, unwrap } from "./client";
import { Problem, Unreachable } from "./problems";
import { connection } from "./serverConnection";
import { session, startSession } from "./session";

const HERE = `${window.location.origin}/api/v1/films`;
const get = () => new Request(HERE);
const post = (init: RequestInit = {}) =>
  new Request(HERE, { method: "POST", body: `{"film":"f1"}`, ...init });
const errorOf = (request: Promise<unknown>): Promise<unknown> =>
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

describe("the CSRF token", () => {
  test("is sent with requests that change something", async () => {
    const requests = serve(() => jsonResponse({}));
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) await send(new Request(HERE, { method }));
    expect(requests.map((request) => request.csrf)).toEqual(["token-1", "token-1", "token-1", "token-1"]);
  });

  test("is not sent with requests that only read", async () => {
    const requests = serve(() => jsonResponse({}));
    for (const method of ["GET", "HEAD"]) await send(new Request(HERE, { method }));
    expect(requests.map((request) => request.csrf)).toEqual([null, null]);
  });
});

describe("an expired session", () => {
  test("makes the request wait for a login, then sends it again unchanged", async () => {
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

  test("lets all waiting requests continue after the login", async () => {
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

describe("an outdated CSRF token", () => {
  test("is fetched again once, and the request is sent with it", async () => {
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

  test("is not fetched twice: a second refusal is reported", async () => {
    const requests = serve(({ path }) =>
      path === "/api/v1/session/me" ? jsonResponse(READER) : problemResponse(403, "csrf"),
    );
    expect(await errorOf(send(post()))).toMatchObject({ status: 403, code: "csrf" });
    expect(requests).toHaveLength(3);
  });

  test("with a network error on the retry counts as unreachable, so that the step is tried again", async () => {
    serveInTurn(() => problemResponse(403, "csrf"), networkError);
    expect(await errorOf(send(post()))).toBeInstanceOf(Unreachable);
  });
});

describe("a server that does not answer", () => {
  test("is reported as unreachable, and the connection as lost", async () => {
    serve(networkError);
    expect(await errorOf(send(get()))).toBeInstanceOf(Unreachable);
    expect(connection.get().lost).toBe(true);
  });

  test("is polled every second until it answers", async () => {
    const requests = serveInTurn(
      networkError,
      networkError,
      () => problemResponse(503, "busy"),
      () => jsonResponse({}),
    );
    await errorOf(send(post()));
    await vi.advanceTimersByTimeAsync(2500);
    expect(connection.get().lost).toBe(true);
    await vi.advanceTimersByTimeAsync(1000);
    expect(connection.get().lost).toBe(false);
    expect(requests.slice(1).map((request) => request.path)).toEqual(Array(3).fill("/api/v1/health"));
    await vi.advanceTimersByTimeAsync(5000);
    expect(requests).toHaveLength(4);
  });

  test("counts as reachable again after any answer", async () => {
    serveInTurn(networkError, () => jsonResponse({}));
    await errorOf(send(get()));
    await send(get());
    expect(connection.get().lost).toBe(false);
  });

  test("does not count as unreachable when the page aborts the request", async () => {
    serve(networkError);
    const taken = new AbortController();
    taken.abort();
    const error = await errorOf(send(new Request(HERE, { signal: taken.signal })));
    expect(error).not.toBeInstanceOf(Unreachable);
    expect(connection.get().lost).toBe(false);
  });
});

describe("a refusal", () => {
  test("carries its code, detail, safety check and retry delay", async () => {
    const check = { claimed: "cavity", rival: "effusion", mismatch: true };
    serve(() => problemResponse(409, "concept_mismatch", { check }, { "Retry-After": "7" }));
    const problem = await errorOf(send(post()));
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

  test("is recognised even if a proxy answers with HTML", async () => {
    serve(() => new Response("<h1>Bad gateway</h1>", { status: 502, statusText: "Bad Gateway" }));
    expect(await errorOf(send(get()))).toMatchObject({
      status: 502,
      code: "refused",
      detail: "Bad Gateway",
      check: null,
      retryAfter: null,
    });
  });

  test("with a date in Retry-After has no retry delay", async () => {
    serve(() => problemResponse(503, "busy", {}, { "Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT" }));
    expect(await errorOf(send(get()))).toMatchObject({ retryAfter: null });
  });

  test("shows that the server is reachable", async () => {
    serve(() => problemResponse(404, "not_found"));
    await errorOf(send(get()));
    expect(connection.get().lost).toBe(false);
  });
});

describe("the data of a response", () => {
  test("is returned without the response around it", async () => {
    serve(() => jsonResponse([{ version: "m1" }]));
    expect(await unwrap(client.GET("/api/v1/models"))).toEqual([{ version: "m1" }]);
  });

  test("may be empty only with status 204", async () => {
    expect(await unwrap(Promise.resolve({ response: new Response(null, { status: 204 }) }))).toBeUndefined();
    const empty = unwrap(Promise.resolve({ response: new Response(null, { status: 200 }) }));
    expect(await errorOf(empty)).toBeInstanceOf(Problem);
  });
});
