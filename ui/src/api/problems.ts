/** Errors of requests to the server. */
import type { Check } from "./types";

/** The server refused the request (problem details, RFC 9457). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly check: Check | null = null,
    readonly retryAfter: number | null = null,
  ) {
    super(detail);
  }
}

/** No server answered. */
export class Unreachable extends Error {}

/** A proxy answers with these when the server is down. */
const GATEWAY_STATUSES = new Set([502, 504]);
/** Errors that end without action. A full disk or too many jobs do not; these are shown. */
const TEMPORARY_CODES = new Set(["busy", "too_many_requests", "database_unavailable"]);

/** Whether the same request may succeed a little later. */
export function isTemporary(error: unknown): boolean {
  return (
    error instanceof Unreachable ||
    (error instanceof Problem && (GATEWAY_STATUSES.has(error.status) || TEMPORARY_CODES.has(error.code)))
  );
}

export async function problemFrom(response: Response): Promise<Problem> {
  const after = Number(response.headers.get("Retry-After") ?? NaN);
  const retryAfter = Number.isFinite(after) ? after : null;
  try {
    const body = (await response.json()) as { code?: string; detail?: string; check?: Check };
    return new Problem(
      response.status,
      body.code ?? "refused",
      body.detail ?? response.statusText,
      body.check ?? null,
      retryAfter,
    );
  } catch {
    return new Problem(response.status, "refused", response.statusText, null, retryAfter);
  }
}
