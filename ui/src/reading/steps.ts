/** Steps of a study: sent with the revision that one saw, so that none is ever taken twice. */
import { client, told } from "../api/client";
import { Problem } from "../api/problems";
import { session } from "../api/session";
import type { Correction, Step, Study } from "../api/types";
import { type Box, sameBox } from "../film/box";

export interface BoxSaid {
  box: Box;
  concept: string;
  positive: boolean;
}

export type StepAsked =
  | { kind: "box"; said: BoxSaid; confirmed: boolean; reason: string | null }
  | { kind: "redraw"; number: number; said: BoxSaid; confirmed: boolean; reason: string | null }
  | { kind: "withdraw"; number: number }
  | { kind: "reject"; concept: string }
  | { kind: "undo" }
  | { kind: "redo" };

/** Where the study stands after the step. */
export async function taken(study: Study, asked: StepAsked): Promise<Study> {
  try {
    return await sent(study, asked);
  } catch (error) {
    if (error instanceof Problem && error.code === "stale_study") return await arrived(study, asked, error);
    throw error;
  }
}

async function sent({ id, revision }: Study, asked: StepAsked): Promise<Study> {
  const params = { path: { study: id } };
  switch (asked.kind) {
    case "box": {
      const { said, confirmed, reason } = asked;
      const body = { ...said, confirmed, reason, revision };
      return (await told(client.POST("/api/v1/studies/{study}/boxes", { params, body }))).study;
    }
    case "redraw": {
      const { said, number, confirmed, reason } = asked;
      const body = { ...said, confirmed, reason, revision };
      const at = { path: { study: id, number } };
      return (
        await told(client.POST("/api/v1/studies/{study}/corrections/{number}/redraw", { params: at, body }))
      ).study;
    }
    case "withdraw": {
      const at = { path: { study: id, number: asked.number } };
      const body = { revision };
      return (
        await told(client.POST("/api/v1/studies/{study}/corrections/{number}/withdraw", { params: at, body }))
      ).study;
    }
    case "reject": {
      const body = { concept: asked.concept, revision };
      return (await told(client.POST("/api/v1/studies/{study}/rejections", { params, body }))).study;
    }
    case "undo":
      return (await told(client.POST("/api/v1/studies/{study}/undo", { params, body: { revision } }))).study;
    case "redo":
      return (await told(client.POST("/api/v1/studies/{study}/redo", { params, body: { revision } }))).study;
  }
}

/**
 * The study moved on. If the one step that it moved by is the very one that was asked for, the answer to an earlier
 * try was lost on its way; else somebody was faster, in another window.
 */
async function arrived(study: Study, asked: StepAsked, refusal: Problem): Promise<Study> {
  const params = { path: { study: study.id } };
  const [now, steps] = await Promise.all([
    told(client.GET("/api/v1/studies/{study}", { params })),
    told(client.GET("/api/v1/studies/{study}/history", { params })),
  ]);
  const last = steps.at(-1);
  if (last && now.revision === study.revision + 1 && isSame(last, asked, study, session.get().me?.name ?? ""))
    return now;
  throw refusal;
}

const KINDS = {
  box: "corrected",
  reject: "corrected",
  redraw: "redrawn",
  withdraw: "withdrawn",
  undo: "undone",
  redo: "redone",
};

/** Whether `last`, taken by `me` from where `study` stands, is what was asked for. */
export function isSame(last: Step, asked: StepAsked, study: Study, me: string): boolean {
  if (last.by !== me || last.kind !== KINDS[asked.kind]) return false;
  const { correction, replaced } = last;
  switch (asked.kind) {
    case "box":
      return says(correction, asked.said);
    case "redraw":
      return says(correction, asked.said) && isAlike(replaced, study.corrections[asked.number]);
    case "withdraw":
      return isAlike(correction, study.corrections[asked.number]);
    case "reject":
      return correction.kind === "reject" && correction.concept === asked.concept;
    default:
      return true;
  }
}

/** The same box for the same finding may still say the contrary: that it is not there. */
function says({ kind, concept, box }: Correction, said: BoxSaid): boolean {
  const alike = kind === (said.positive ? "box" : "not_box") && concept === said.concept;
  return alike && box !== null && sameBox(box, said.box);
}

function isAlike(one: Correction | null, other: Correction | undefined): boolean {
  if (!one || !other || one.kind !== other.kind || one.concept !== other.concept) return false;
  return one.box && other.box ? sameBox(one.box, other.box) : one.box === other.box;
}
