/** Steps of a study. Each request carries the revision that it starts from, so the server takes a step only once. */
import { client, unwrap } from "../api/client";
import { Problem } from "../api/problems";
import { session } from "../api/session";
import type { Correction, Step, Study } from "../api/types";
import { type Box, isSameBox } from "../film/box";

export interface BoxStatement {
  box: Box;
  concept: string;
  /** false: the finding is not in this box. */
  positive: boolean;
}

interface BoxContent {
  statement: BoxStatement;
  confirmed: boolean;
  reason: string | null;
}

export type StepRequest =
  | ({ kind: "box" } & BoxContent)
  | ({ kind: "redraw"; correctionIndex: number } & BoxContent)
  | { kind: "withdraw"; correctionIndex: number }
  | { kind: "reject"; concept: string }
  | { kind: "undo" }
  | { kind: "redo" };

/** Take a step; returns the study after it. */
export async function postStep(study: Study, request: StepRequest): Promise<Study> {
  try {
    return await sendRequest(study, request);
  } catch (error) {
    if (error instanceof Problem && error.code === "stale_study")
      return await studyIfAlreadyTaken(study, request, error);
    throw error;
  }
}

async function sendRequest({ id, revision }: Study, request: StepRequest): Promise<Study> {
  const params = { path: { study: id } };
  const post = () => {
    switch (request.kind) {
      case "box": {
        const { statement, confirmed, reason } = request;
        const body = { ...statement, confirmed, reason, revision };
        return client.POST("/api/v1/studies/{study}/boxes", { params, body });
      }
      case "redraw": {
        const { statement, confirmed, reason } = request;
        const body = { ...statement, confirmed, reason, revision };
        const path = { study: id, number: request.correctionIndex };
        return client.POST("/api/v1/studies/{study}/corrections/{number}/redraw", {
          params: { path },
          body,
        });
      }
      case "withdraw": {
        const path = { study: id, number: request.correctionIndex };
        return client.POST("/api/v1/studies/{study}/corrections/{number}/withdraw", {
          params: { path },
          body: { revision },
        });
      }
      case "reject": {
        const body = { concept: request.concept, revision };
        return client.POST("/api/v1/studies/{study}/rejections", { params, body });
      }
      case "undo":
        return client.POST("/api/v1/studies/{study}/undo", { params, body: { revision } });
      case "redo":
        return client.POST("/api/v1/studies/{study}/redo", { params, body: { revision } });
    }
  };
  return (await unwrap(post())).study;
}

/**
 * The study has a newer revision than the request. If its last step is the requested one, an earlier try succeeded and
 * only the answer was lost: return the study. Otherwise the study was changed in another window: throw the refusal.
 */
async function studyIfAlreadyTaken(study: Study, request: StepRequest, refusal: Problem): Promise<Study> {
  const params = { path: { study: study.id } };
  const [current, steps] = await Promise.all([
    unwrap(client.GET("/api/v1/studies/{study}", { params })),
    unwrap(client.GET("/api/v1/studies/{study}/history", { params })),
  ]);
  const last = steps.at(-1);
  const user = session.get().me?.name ?? "";
  if (last && current.revision === study.revision + 1 && isRequestedStep(last, request, study, user))
    return current;
  throw refusal;
}

const STEP_KINDS = {
  box: "corrected",
  reject: "corrected",
  redraw: "redrawn",
  withdraw: "withdrawn",
  undo: "undone",
  redo: "redone",
};

/** Whether `last` is the step that `user` requested for `study`. */
export function isRequestedStep(last: Step, request: StepRequest, study: Study, user: string): boolean {
  if (last.by !== user || last.kind !== STEP_KINDS[request.kind]) return false;
  const { correction, replaced } = last;
  switch (request.kind) {
    case "box":
      return matchesStatement(correction, request.statement);
    case "redraw":
      return (
        matchesStatement(correction, request.statement) &&
        isSameCorrection(replaced, study.corrections[request.correctionIndex])
      );
    case "withdraw":
      return isSameCorrection(correction, study.corrections[request.correctionIndex]);
    case "reject":
      return correction.kind === "reject" && correction.concept === request.concept;
    default:
      return true;
  }
}

function matchesStatement({ kind, concept, box }: Correction, statement: BoxStatement): boolean {
  const isSameClaim = kind === (statement.positive ? "box" : "not_box") && concept === statement.concept;
  return isSameClaim && box !== null && isSameBox(box, statement.box);
}

export function isSameCorrection(a: Correction | null, b: Correction | undefined): boolean {
  if (!a || !b || a.kind !== b.kind || a.concept !== b.concept) return false;
  return a.box && b.box ? isSameBox(a.box, b.box) : a.box === b.box;
}
