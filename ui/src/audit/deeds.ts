/** What an event of the log says, taken out of its body; what is missing or of another kind is left out. */
import type { LogEvent } from "../api/types";

type Told = Record<string, unknown>;

export interface DeedCorrection {
  kind: string;
  /** null: every finding. */
  concept: string | null;
  /** What the model sees instead, where it warned and somebody confirmed all the same. */
  against: string | null;
}

export interface Deed {
  actor: string;
  correction: DeedCorrection | null;
  replaced: DeedCorrection | null;
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
  /** The likeliest class before and after, with its share. */
  before: [string, number] | null;
  after: [string, number] | null;
}

export function deedOf(event: LogEvent): Deed {
  const body: Told = event.body;
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
      ? body.prototypes.filter((one) => typeof one === "number")
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

function correctionOf(told: unknown): DeedCorrection | null {
  const found = record(told);
  if (typeof found.kind !== "string") return null;
  const check = record(found.check);
  return {
    kind: found.kind,
    concept: typeof found.concept === "string" ? found.concept : null,
    // Whoever confirms a box that raises no warning confirms nothing.
    against: found.confirmed === true && check.mismatch === true ? text(check.dominant) || null : null,
  };
}

function likeliest(told: unknown): [string, number] | null {
  const shares = Object.entries(record(told)).filter(
    (pair): pair is [string, number] => typeof pair[1] === "number",
  );
  return shares.sort(([, one], [, other]) => other - one)[0] ?? null;
}

function record(told: unknown): Told {
  return typeof told === "object" && told !== null && !Array.isArray(told) ? (told as Told) : {};
}

function text(told: unknown): string {
  return typeof told === "string" ? told : "";
}
