/** What can go wrong between the page and the server. */
import type { components } from "./schema";

export type Check = components["schemas"]["CheckTold"];

/** The server refused, and said why (RFC 9457). */
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

/** Nobody answered. */
export class Unreachable extends Error {}

/** What a proxy says of a server that is gone. */
const GATEWAY = new Set([502, 504]);
/** What passes by itself; a full disk or too many jobs do not, and are told. */
const SOON = new Set(["busy", "too_many_requests", "database_unavailable"]);

/** Whether the same request may well be answered a little later. */
export function passes(error: unknown): boolean {
  return (
    error instanceof Unreachable ||
    (error instanceof Problem && (GATEWAY.has(error.status) || SOON.has(error.code)))
  );
}

export async function problemOf(response: Response): Promise<Problem> {
  const after = Number(response.headers.get("Retry-After") ?? NaN);
  const retryAfter = Number.isFinite(after) ? after : null;
  try {
    const told = (await response.json()) as { code?: string; detail?: string; check?: Check };
    return new Problem(
      response.status,
      told.code ?? "refused",
      told.detail ?? response.statusText,
      told.check ?? null,
      retryAfter,
    );
  } catch {
    return new Problem(response.status, "refused", response.statusText, null, retryAfter);
  }
}
