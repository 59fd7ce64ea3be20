/** The page's upload queue, connected to the server. */
import { refreshCsrfToken } from "../api/client";
import { connection, markUnreachable } from "../api/serverConnection";
import { waitForLogin } from "../api/session";
import { retryDelay } from "../api/sharedQueries";
import { createUploadQueue, isFinished, type Upload } from "./uploadQueue";
import { sendFilm } from "./uploadRequest";

export const uploadQueue = createUploadQueue({
  send: sendFilm,
  untilReachable,
  untilLoggedIn: waitForLogin,
  refreshCsrfToken,
  waitBeforeRetry: (attempt, retryAfter) =>
    new Promise((resolve) =>
      setTimeout(resolve, retryAfter === null ? retryDelay(attempt, null) : retryAfter * 1000),
    ),
});

function untilReachable(): Promise<void> {
  markUnreachable();
  return new Promise((resolve) => {
    const unsubscribe = connection.subscribe(() => {
      if (connection.get().lost) return;
      unsubscribe();
      resolve();
    });
  });
}

export interface UploadCounts {
  total: number;
  ended: number;
  refused: number;
  /** Films that are new in the list. */
  arrived: number;
}

export function countUploads(uploads: readonly Upload[]): UploadCounts {
  const count = (fits: (upload: Upload) => boolean) => uploads.filter(fits).length;
  return {
    total: uploads.length,
    ended: count(isFinished),
    refused: count((upload) => upload.state === "refused" || upload.state === "unreadable"),
    arrived: count((upload) => upload.state === "done"),
  };
}

// Closing the page cancels uploads, so the browser asks first.
window.addEventListener("beforeunload", (event) => {
  if (uploadQueue.uploads.get().some((upload) => !isFinished(upload))) event.preventDefault();
});
