/** The HTTP client of the page. */
import createClient from "openapi-fetch";

import { Problem, problemFrom, Unreachable } from "./problems";
import type { paths } from "./schema";
import { markReachable, markUnreachable } from "./serverConnection";
import { csrfToken, sessionNumber, startSession, waitForLogin } from "./session";
import type { CurrentUser } from "./types";

const SAFE_METHODS = ["GET", "HEAD"];

/** Send a request. Throws `Problem` if the server refuses it, `Unreachable` if no server answers. */
export async function send(request: Request): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    const number = sessionNumber();
    const response = await sendOnce(request);
    if (response.ok) return response;
    const problem = await problemFrom(response);
    // If the user has logged in again since the request was sent, just send it again.
    if (problem.code === "login_needed" && number === sessionNumber()) await waitForLogin();
    else if (problem.code === "login_needed") continue;
    else if (problem.code === "csrf" && attempt === 0) await refreshCsrfToken();
    else throw problem;
  }
}

/** The same for plain addresses, for responses other than JSON. */
export function fetchFrom(address: string, init: RequestInit = {}): Promise<Response> {
  return send(new Request(address, init));
}

async function sendOnce(request: Request): Promise<Response> {
  const copy = request.clone();
  if (!SAFE_METHODS.includes(copy.method)) copy.headers.set("X-CSRF-Token", csrfToken());
  try {
    const response = await fetch(copy);
    markReachable();
    return response;
  } catch (error) {
    if (request.signal.aborted) throw error;
    markUnreachable();
    throw new Unreachable();
  }
}

/** A login in another window changes the CSRF token; fetch the new one. */
export async function refreshCsrfToken(): Promise<void> {
  const response = await fetchFrom(`${window.location.origin}/api/v1/session/me`);
  startSession((await response.json()) as CurrentUser);
}

export const client = createClient<paths>({ baseUrl: window.location.origin, fetch: send });

/** The data of a response. Refusals were thrown before. */
export async function unwrap<T>(request: Promise<{ data?: T; response: Response }>): Promise<T> {
  const { data, response } = await request;
  if (data === undefined && response.status !== 204)
    throw new Problem(response.status, "refused", response.statusText);
  return data as T;
}
