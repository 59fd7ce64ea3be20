/** The one way in which the page asks the server. */
import createClient from "openapi-fetch";

import { noteAnswer, noteSilence } from "./connection";
import { Problem, problemOf, Unreachable } from "./problems";
import type { paths } from "./schema";
import { begin, csrfToken, loggedIn, type Me, sessionNumber } from "./session";

const SAFE = ["GET", "HEAD"];

/** The server's answer. Throws `Problem` where it refuses and `Unreachable` where nobody answers. */
export async function reach(request: Request): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    const number = sessionNumber();
    const response = await sent(request);
    if (response.ok) return response;
    const problem = await problemOf(response);
    // Somebody may have logged in again while this was on its way: then it is only asked again.
    if (problem.code === "login_needed" && number === sessionNumber()) await loggedIn();
    else if (problem.code === "login_needed") continue;
    else if (problem.code === "csrf" && attempt === 0) await meetAgain();
    else throw problem;
  }
}

/** The same, for addresses whose answer is no JSON. */
export function reachAt(address: string, init: RequestInit = {}): Promise<Response> {
  return reach(new Request(address, init));
}

async function sent(request: Request): Promise<Response> {
  const copy = request.clone();
  if (!SAFE.includes(copy.method)) copy.headers.set("X-CSRF-Token", csrfToken());
  try {
    const response = await fetch(copy);
    noteAnswer();
    return response;
  } catch (error) {
    if (request.signal.aborted) throw error;
    noteSilence();
    throw new Unreachable();
  }
}

/** Another window logged in meanwhile, so the token is another one. */
async function meetAgain(): Promise<void> {
  const response = await reachAt(`${window.location.origin}/api/v1/session/me`);
  begin((await response.json()) as Me);
}

export const client = createClient<paths>({ baseUrl: window.location.origin, fetch: reach });

/** What was told, without the wrapping; refusals were thrown already. */
export async function told<T>(answer: Promise<{ data?: T; response: Response }>): Promise<T> {
  const { data, response } = await answer;
  if (data === undefined && response.status !== 204)
    throw new Problem(response.status, "refused", response.statusText);
  return data as T;
}
