import { afterEach, beforeEach, describe, expect, test } from "vitest";

import type { Step, Study } from "../api/types";
import { jsonResponse, logIn, problemResponse, reset, serve } from "../test/fakeServer";
import { boxed, CAVITY_BOX, CHECK, rejected, stepOf, study } from "../test/fixtures";
import { isRequestedStep, postStep, type StepRequest } from "./studySteps";

const STATEMENT = { box: CAVITY_BOX, concept: "cavity", positive: true };
const BOX: StepRequest = { kind: "box", statement: STATEMENT, confirmed: false, reason: null };
const NOT_HERE: StepRequest = { ...BOX, statement: { ...STATEMENT, positive: false } };
const CORRECTED = [boxed(), rejected("nodule")];
const BEFORE = study({ revision: 4, corrections: CORRECTED });
const AFTER = study({ revision: 5, corrections: [...CORRECTED, boxed()] });

beforeEach(() => logIn());
afterEach(() => reset());

describe("a step that is taken", () => {
  const steps: [string, StepRequest, string, Record<string, unknown>][] = [
    ["a box", BOX, "/boxes", { ...STATEMENT, confirmed: false, reason: null }],
    [
      "a box confirmed with a reason",
      { ...BOX, confirmed: true, reason: "seen on CT" },
      "/boxes",
      { ...STATEMENT, confirmed: true, reason: "seen on CT" },
    ],
    [
      "a changed box",
      { ...BOX, kind: "redraw", correctionIndex: 1 },
      "/corrections/1/redraw",
      { ...STATEMENT, confirmed: false, reason: null },
    ],
    ["a removed correction", { kind: "withdraw", correctionIndex: 1 }, "/corrections/1/withdraw", {}],
    ["a rejection", { kind: "reject", concept: "nodule" }, "/rejections", { concept: "nodule" }],
    ["an undo", { kind: "undo" }, "/undo", {}],
    ["a redo", { kind: "redo" }, "/redo", {}],
  ];
  test.each(steps)("%s goes out once, with the revision that was seen", async (_, request, path, body) => {
    const all = serve(() => jsonResponse({ study: AFTER }));
    expect(await postStep(BEFORE, request)).toEqual(AFTER);
    expect(all).toEqual([
      { method: "POST", path: `/api/v1/studies/s1${path}`, csrf: "token-1", body: { ...body, revision: 4 } },
    ]);
  });

  test("a box with a mismatch is refused with the check", async () => {
    serve(() => problemResponse(409, "concept_mismatch", { check: CHECK }));
    await expect(postStep(BEFORE, BOX)).rejects.toMatchObject({ code: "concept_mismatch", check: CHECK });
  });
});

describe("a study with a newer revision", () => {
  /** The server refuses the step as stale; the study stands at `now`, and `last` was its last step. */
  function moved(current: Study, last: Step): void {
    serve(({ method, path }) => {
      if (method === "POST") return problemResponse(409, "stale_study");
      return path.endsWith("/history")
        ? jsonResponse([stepOf({ step: 1, by: "henry" }), last])
        : jsonResponse(current);
    });
  }
  const refusal = { code: "stale_study" };

  test("by the requested step itself: it was taken, and only the answer was lost", async () => {
    moved(AFTER, stepOf({ step: 5 }));
    expect(await postStep(BEFORE, BOX)).toEqual(AFTER);
  });

  test("by somebody else's step: nothing was taken", async () => {
    moved(AFTER, stepOf({ step: 5, by: "henry" }));
    await expect(postStep(BEFORE, BOX)).rejects.toMatchObject(refusal);
  });

  test("by another step of one's own, in another window: nothing was taken", async () => {
    moved(AFTER, stepOf({ step: 5, correction: rejected("cavity") }));
    await expect(postStep(BEFORE, BOX)).rejects.toMatchObject(refusal);
  });

  test("by more than one step: nothing was taken, whatever the last one is", async () => {
    moved({ ...AFTER, revision: 6 }, stepOf({ step: 6 }));
    await expect(postStep(BEFORE, BOX)).rejects.toMatchObject(refusal);
  });

  test("by the same box with the opposite statement: nothing was taken", async () => {
    moved(AFTER, stepOf({ step: 5 }));
    await expect(postStep(BEFORE, NOT_HERE)).rejects.toMatchObject(refusal);
  });
});

describe("recognising the requested step", () => {
  const same = (last: Partial<Step>, request: StepRequest) =>
    isRequestedStep(stepOf(last), request, BEFORE, "grace");

  test("a box matches by edges, finding and statement", () => {
    expect(same({}, BOX)).toBe(true);
    expect(same({ correction: boxed({ kind: "not_box" }) }, NOT_HERE)).toBe(true);
    expect(same({ correction: boxed({ box: { ...CAVITY_BOX, x1: 399 } }) }, BOX)).toBe(false);
    expect(same({ correction: boxed({ concept: "nodule" }) }, BOX)).toBe(false);
    expect(same({ correction: boxed({ kind: "not_box" }) }, BOX)).toBe(false);
    expect(same({ kind: "redrawn" }, BOX)).toBe(false);
    expect(same({ by: "henry" }, BOX)).toBe(false);
  });

  test("a redrawn box matches only if it replaced the same correction", () => {
    const request: StepRequest = { ...NOT_HERE, kind: "redraw", correctionIndex: 0 };
    const correction = boxed({ kind: "not_box" });
    expect(same({ kind: "redrawn", correction, replaced: boxed() }, request)).toBe(true);
    expect(same({ kind: "redrawn", correction, replaced: boxed({ concept: "nodule" }) }, request)).toBe(
      false,
    );
    expect(same({ kind: "redrawn", correction: boxed(), replaced: boxed() }, request)).toBe(false);
  });

  test("a withdrawal matches only for the same correction", () => {
    expect(same({ kind: "withdrawn", correction: boxed() }, { kind: "withdraw", correctionIndex: 0 })).toBe(
      true,
    );
    expect(
      same({ kind: "withdrawn", correction: rejected("nodule") }, { kind: "withdraw", correctionIndex: 1 }),
    ).toBe(true);
    expect(same({ kind: "withdrawn", correction: boxed() }, { kind: "withdraw", correctionIndex: 1 })).toBe(
      false,
    );
    expect(same({ kind: "withdrawn", correction: boxed() }, { kind: "withdraw", correctionIndex: 9 })).toBe(
      false,
    );
  });

  test("a rejection matches only for the same finding", () => {
    expect(same({ correction: rejected("nodule") }, { kind: "reject", concept: "nodule" })).toBe(true);
    expect(same({ correction: rejected("nodule") }, { kind: "reject", concept: "cavity" })).toBe(false);
    expect(same({ correction: boxed() }, { kind: "reject", concept: "cavity" })).toBe(false);
  });

  test("undo and redo do not match each other", () => {
    expect(same({ kind: "undone" }, { kind: "undo" })).toBe(true);
    expect(same({ kind: "undone" }, { kind: "redo" })).toBe(false);
    expect(same({ kind: "redone" }, { kind: "redo" })).toBe(true);
  });
});
