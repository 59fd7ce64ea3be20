/** A fake server for tests: gives the responses that a test wants and records requests. */
import { vi } from "vitest";

import { markReachable } from "../api/serverConnection";
import { session } from "../api/session";
import type { CurrentUser } from "../api/types";

export interface RecordedRequest {
  method: string;
  /** With the query string. */
  path: string;
  csrf: string | null;
  body: unknown;
}

/** An `Error` instead of a response simulates a network error. */
type Answer = Response | Error | Promise<Response>;

export function serve(answer: (request: RecordedRequest, number: number) => Answer): RecordedRequest[] {
  const all: RecordedRequest[] = [];
  vi.stubGlobal("fetch", async (input: Request | string, init?: RequestInit) => {
    const request =
      input instanceof Request ? input : new Request(new URL(input, window.location.href), init);
    const { pathname, search } = new URL(request.url);
    // Read the body, as a browser does: a request cannot be sent twice.
    const text = await request.text();
    const recorded = {
      method: request.method,
      path: pathname + search,
      csrf: request.headers.get("X-CSRF-Token"),
      body: text === "" ? null : (JSON.parse(text) as unknown),
    };
    all.push(recorded);
    const response = await answer(recorded, all.length - 1);
    if (response instanceof Error) throw response;
    return response;
  });
  return all;
}

/** Give these responses in order; repeat the last one. */
export function serveInTurn(...answers: [() => Answer, ...(() => Answer)[]]): RecordedRequest[] {
  return serve((_, number) => (answers[number] ?? answers.at(-1) ?? answers[0])());
}

export const jsonResponse = (body: unknown, status = 200): Response => Response.json(body, { status });

export const problemResponse = (
  status: number,
  code: string,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Response =>
  new Response(JSON.stringify({ code, detail: `Refused: ${code}.`, ...more }), {
    status,
    headers: { "Content-Type": "application/problem+json", ...headers },
  });

export const networkError = (): Error => new TypeError("Failed to fetch");

export const READER: CurrentUser = {
  name: "grace",
  role: "reader",
  csrf: "token-1",
  login: true,
  notice: "",
};

/** Log a user in, with a server that answers. */
export function logIn(me: CurrentUser | null = READER): void {
  session.set({ me, expired: false });
}

export function reset(): void {
  markReachable();
  vi.unstubAllGlobals();
  session.set({ me: null, expired: false });
}
