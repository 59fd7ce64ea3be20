/** A server that answers what a test wants, and remembers what it was asked. */
import { vi } from "vitest";

import { noteAnswer } from "../api/connection";
import { type Me, session } from "../api/session";

export interface AskedOf {
  method: string;
  /** With what is asked after the question mark. */
  path: string;
  csrf: string | null;
  body: unknown;
}

/** An `Error` instead of an answer: the line is cut. */
type Answer = Response | Error | Promise<Response>;

export function serve(answer: (asked: AskedOf, number: number) => Answer): AskedOf[] {
  const all: AskedOf[] = [];
  vi.stubGlobal("fetch", async (input: Request | string, init?: RequestInit) => {
    const request =
      input instanceof Request ? input : new Request(new URL(input, window.location.href), init);
    const { pathname, search } = new URL(request.url);
    // Like a browser: what was sent once cannot be sent again.
    const text = await request.text();
    const asked = {
      method: request.method,
      path: pathname + search,
      csrf: request.headers.get("X-CSRF-Token"),
      body: text === "" ? null : (JSON.parse(text) as unknown),
    };
    all.push(asked);
    const told = await answer(asked, all.length - 1);
    if (told instanceof Error) throw told;
    return told;
  });
  return all;
}

/** These answers, one after the other; the last one again and again. */
export function serveInTurn(...answers: [() => Answer, ...(() => Answer)[]]): AskedOf[] {
  return serve((_, number) => (answers[number] ?? answers.at(-1) ?? answers[0])());
}

export const told = (body: unknown, status = 200): Response => Response.json(body, { status });

export const refused = (
  status: number,
  code: string,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Response =>
  new Response(JSON.stringify({ code, detail: `Refused: ${code}.`, ...more }), {
    status,
    headers: { "Content-Type": "application/problem+json", ...headers },
  });

export const cut = (): Error => new TypeError("Failed to fetch");

export const READER: Me = { name: "grace", role: "reader", csrf: "token-1", login: true, notice: "" };

/** Somebody sits at the page, and the server is there. */
export function seat(me: Me | null = READER): void {
  session.set({ me, ended: false });
}

export function leave(): void {
  noteAnswer();
  vi.unstubAllGlobals();
  session.set({ me: null, ended: false });
}
