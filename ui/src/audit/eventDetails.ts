/** Reads the untyped body of a log event. Missing or malformed values become empty. */
import type { LogEvent } from "../api/types";

type Json = Record<string, unknown>;

export interface CorrectionDetails {
  kind: string;
  /** null means every finding. */
  concept: string | null;
  /** The finding that the model sees, if the person confirmed the correction despite the warning. */
  against: string | null;
}

export interface EventDetails {
  actor: string;
  correction: CorrectionDetails | null;
  replaced: CorrectionDetails | null;
  claimed: string;
  dominant: string;
  reason: string | null;
  concept: string;
  prototypes: number[];
  films: number;
  format: string;
  name: string;
  dataSet: string;
  user: string;
  role: string;
  disabled: boolean;
  passwordChanged: boolean;
  /** The likeliest class and its probability, before and after. */
  before: [string, number] | null;
  after: [string, number] | null;
}

export function eventDetails(event: LogEvent): EventDetails {
  const body: Json = event.body;
  const check = record(body.check);
  return {
    actor: event.actor,
    correction: correctionOf(body.correction),
    replaced: correctionOf(body.replaced),
    claimed: text(check.claimed),
    dominant: text(check.dominant),
    reason: text(body.reason) || null,
    concept: text(body.concept),
    prototypes: Array.isArray(body.prototypes)
      ? body.prototypes.filter((number) => typeof number === "number")
      : [],
    films: Array.isArray(body.films) ? body.films.length : 0,
    format: text(body.format),
    name: text(body.name),
    dataSet: text(body.data_set),
    user: text(body.user),
    role: text(body.role),
    disabled: body.disabled === true,
    passwordChanged: body.password_changed === true,
    before: likeliest(body.prediction_before),
    after: likeliest(body.prediction_after ?? body.prediction),
  };
}

function correctionOf(value: unknown): CorrectionDetails | null {
  const correction = record(value);
  if (typeof correction.kind !== "string") return null;
  const check = record(correction.check);
  return {
    kind: correction.kind,
    concept: typeof correction.concept === "string" ? correction.concept : null,
    // Only a confirmed warning counts: `confirmed` without a mismatch means nothing.
    against: correction.confirmed === true && check.mismatch === true ? text(check.dominant) || null : null,
  };
}

function likeliest(value: unknown): [string, number] | null {
  const shares = Object.entries(record(value)).filter(
    (pair): pair is [string, number] => typeof pair[1] === "number",
  );
  return shares.sort(([, a], [, b]) => b - a)[0] ?? null;
}

function record(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
