/** The one queue of uploads of this page, and how it meets the server. */
import { reachAt } from "../api/client";
import { connection, noteSilence } from "../api/connection";
import { pause } from "../api/queries";
import { begin, loggedIn, type Me } from "../api/session";
import { createQueue, hasEnded, type Upload } from "./queue";
import { sendFilm } from "./sending";

export const queue = createQueue({
  send: sendFilm,
  back: async () => {
    noteSilence();
    await answered();
  },
  loggedIn,
  meetAgain: async () => begin((await (await reachAt("/api/v1/session/me")).json()) as Me),
  rest: (attempt, retryAfter) =>
    new Promise((resolve) =>
      setTimeout(resolve, retryAfter === null ? pause(attempt, null) : retryAfter * 1000),
    ),
});

function answered(): Promise<void> {
  return new Promise((resolve) => {
    const leave = connection.subscribe(() => {
      if (connection.get().lost) return;
      leave();
      resolve();
    });
  });
}

export interface Tally {
  total: number;
  ended: number;
  refused: number;
  /** Films that are in the list now and were not before. */
  arrived: number;
}

export function tally(uploads: readonly Upload[]): Tally {
  const count = (fits: (one: Upload) => boolean) => uploads.filter(fits).length;
  return {
    total: uploads.length,
    ended: count(hasEnded),
    refused: count((one) => one.state === "refused" || one.state === "unreadable"),
    arrived: count((one) => one.state === "done"),
  };
}

// Leaving the page breaks uploads off; the browser asks first.
window.addEventListener("beforeunload", (event) => {
  if (queue.uploads.get().some((one) => !hasEnded(one))) event.preventDefault();
});
