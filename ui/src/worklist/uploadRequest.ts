/** Uploads one file. Uses XMLHttpRequest, because fetch does not report upload progress. */
import { csrfToken } from "../api/session";
import type { UploadedFilm } from "../api/types";

export type UploadResult =
  | { kind: "taken"; upload: UploadedFilm }
  | { kind: "refused"; status: number; code: string; detail: string; retryAfter: number | null }
  | { kind: "silence" }
  | { kind: "stopped" };

export interface UploadRequest {
  result: Promise<UploadResult>;
  stop: () => void;
}

/** `onSent` gets the fraction sent; at 1 the server reads the film. */
export type SendFilm = (file: File, onSent: (share: number) => void) => UploadRequest;

export const sendFilm: SendFilm = (file, onSent) => {
  const request = new XMLHttpRequest();
  const result = new Promise<UploadResult>((resolve) => {
    request.upload.onprogress = (event) => onSent(event.lengthComputable ? event.loaded / event.total : 0);
    request.upload.onload = () => onSent(1);
    request.onload = () => resolve(parseResult(request));
    request.onerror = () => resolve({ kind: "silence" });
    request.ontimeout = () => resolve({ kind: "silence" });
    request.onabort = () => resolve({ kind: "stopped" });
  });
  const form = new FormData();
  form.append("file", file);
  request.open("POST", "/api/v1/films");
  request.setRequestHeader("X-CSRF-Token", csrfToken());
  request.send(form);
  return { result, stop: () => request.abort() };
};

function parseResult(request: XMLHttpRequest): UploadResult {
  const body = parseJson(request.responseText);
  if (request.status >= 200 && request.status < 300 && body)
    return { kind: "taken", upload: body as unknown as UploadedFilm };
  const after = Number(request.getResponseHeader("Retry-After") ?? NaN);
  return {
    kind: "refused",
    status: request.status,
    code: typeof body?.code === "string" ? body.code : "refused",
    detail: typeof body?.detail === "string" ? body.detail : request.statusText,
    retryAfter: Number.isFinite(after) ? after : null,
  };
}

function parseJson(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}
