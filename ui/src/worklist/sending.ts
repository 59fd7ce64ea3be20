/** One file on its way to the server. `fetch` does not tell how much was sent, so this is the older way. */
import type { FilmTaken } from "../api/types";
import { csrfToken } from "../api/session";

export type Answer =
  | { kind: "taken"; taken: FilmTaken }
  | { kind: "refused"; status: number; code: string; detail: string; retryAfter: number | null }
  | { kind: "silence" }
  | { kind: "stopped" };

export interface Sending {
  answer: Promise<Answer>;
  stop: () => void;
}

/** `onSent` hears the share that was sent; 1 means that the server reads the film now. */
export type Send = (file: File, onSent: (share: number) => void) => Sending;

export const sendFilm: Send = (file, onSent) => {
  const request = new XMLHttpRequest();
  const answer = new Promise<Answer>((resolve) => {
    request.upload.onprogress = (event) => onSent(event.lengthComputable ? event.loaded / event.total : 0);
    request.upload.onload = () => onSent(1);
    request.onload = () => resolve(answerOf(request));
    request.onerror = () => resolve({ kind: "silence" });
    request.ontimeout = () => resolve({ kind: "silence" });
    request.onabort = () => resolve({ kind: "stopped" });
  });
  const form = new FormData();
  form.append("file", file);
  request.open("POST", "/api/v1/films");
  request.setRequestHeader("X-CSRF-Token", csrfToken());
  request.send(form);
  return { answer, stop: () => request.abort() };
};

function answerOf(request: XMLHttpRequest): Answer {
  const told = parsed(request.responseText);
  if (request.status >= 200 && request.status < 300 && told)
    return { kind: "taken", taken: told };
  const after = Number(request.getResponseHeader("Retry-After") ?? NaN);
  return {
    kind: "refused",
    status: request.status,
    code: typeof told?.code === "string" ? told.code : "refused",
    detail: typeof told?.detail === "string" ? told.detail : request.statusText,
    retryAfter: Number.isFinite(after) ? after : null,
  };
}

function parsed(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}
