import { cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Study } from "../api/types";
import { type BoxDraft, createViewerState } from "../film/viewerState";
import { boxed, CAVITY_BOX, rejected, resetBrowser, study, studyDataOf } from "../test/fixtures";
import type { StepRequest } from "./studySteps";
import { useStudyActions } from "./useStudyActions";

const DRAFT: BoxDraft = {
  box: CAVITY_BOX,
  concept: "cavity",
  positive: true,
  correctionIndex: null,
  moving: false,
};
/** The same, drawn with the pointer. */
const DRAWN = { ...DRAFT, drawnByPointer: true };
const LARGE = { x1: 100, y1: 100, x2: 900, y2: 900 };
const CORRECTED = study({
  revision: 3,
  can_undo: true,
  corrections: [boxed({ box: LARGE, kind: "not_box", concept: "nodule" }), boxed(), rejected("effusion")],
});

beforeEach(() => resetBrowser());
afterEach(() => cleanup());

function renderActions({
  now = CORRECTED,
  locked = false,
  saving = false,
}: { now?: Study; locked?: boolean; saving?: boolean } = {}) {
  const viewer = createViewerState("f1");
  viewer.selection.set((choice) => ({ ...choice, concept: "cavity" }));
  // The step succeeds at once.
  const takeStep = vi.fn((_: StepRequest, done?: () => void) => done?.());
  const { result } = renderHook(() =>
    useStudyActions({ viewer, studyData: studyDataOf({ study: now }), takeStep, locked, saving }),
  );
  return {
    viewer,
    takeStep,
    actions: result.current,
    sentRequests: () => takeStep.mock.calls.map(([request]) => request),
  };
}

describe("drawing", () => {
  test("makes a box for the selected finding, marked as moving until the pointer is released", () => {
    const { viewer, actions } = renderActions();
    actions.drawBox({ ...CAVITY_BOX, x1: 400.123 }, false, true);
    expect(viewer.draft.get()).toEqual({ ...DRAWN, box: { ...CAVITY_BOX, x1: 400.123 }, moving: true });
    actions.drawBox({ ...CAVITY_BOX, x1: 400.123 }, true, true);
    expect(viewer.draft.get()).toEqual({ ...DRAWN, box: { ...CAVITY_BOX, x1: 400.1 } });
  });

  test("changes the current box and keeps its statement, unless the box is new", () => {
    const { viewer, actions } = renderActions();
    viewer.draft.set({ ...DRAFT, concept: "nodule", positive: false, correctionIndex: 0 });
    actions.drawBox(LARGE, true, false);
    expect(viewer.draft.get()).toEqual({
      ...DRAWN,
      box: LARGE,
      concept: "nodule",
      positive: false,
      correctionIndex: 0,
    });
    actions.drawBox(LARGE, true, true);
    expect(viewer.draft.get()).toEqual({ ...DRAWN, box: LARGE });
  });

  test("does nothing while the study is locked", () => {
    const { viewer, actions } = renderActions({ locked: true });
    actions.drawBox(CAVITY_BOX, true, true);
    expect(viewer.draft.get()).toBeNull();
  });
});

describe("a click on the film", () => {
  test("selects the smallest box under the pointer", () => {
    const { viewer, actions } = renderActions();
    actions.selectBoxAt(500, 400);
    expect(viewer.draft.get()).toEqual({ ...DRAFT, correctionIndex: 1 });
    actions.selectBoxAt(150, 150);
    expect(viewer.draft.get()).toEqual({
      ...DRAFT,
      box: LARGE,
      concept: "nodule",
      positive: false,
      correctionIndex: 0,
    });
  });

  test("beside every box discards the current box", () => {
    const { viewer, actions } = renderActions();
    viewer.draft.set(DRAFT);
    actions.selectBoxAt(1900, 1500);
    expect(viewer.draft.get()).toBeNull();
  });
});

describe("applying", () => {
  test("sends a new box unconfirmed, and clears the draft when it was taken", () => {
    const { viewer, actions, sentRequests } = renderActions();
    viewer.draft.set(DRAFT);
    actions.applyDraft();
    const statement = { box: CAVITY_BOX, concept: "cavity", positive: true };
    expect(sentRequests()).toEqual([{ kind: "box", statement, confirmed: false, reason: null }]);
    expect(viewer.draft.get()).toBeNull();
  });

  test("sends an applied box as a redraw", () => {
    const { viewer, actions, sentRequests } = renderActions();
    viewer.draft.set({ ...DRAFT, correctionIndex: 1 });
    actions.applyDraft();
    expect(sentRequests()).toMatchObject([{ kind: "redraw", correctionIndex: 1 }]);
  });

  test("keeps the draft until the box was taken", () => {
    const { viewer, takeStep, actions } = renderActions();
    takeStep.mockImplementation(() => undefined);
    viewer.draft.set(DRAFT);
    actions.applyDraft();
    expect(viewer.draft.get()).toEqual(DRAFT);
  });

  test.each([{ locked: true }, { saving: true }])(
    "sends nothing while the study cannot be changed: %j",
    (state) => {
      const { viewer, actions, sentRequests } = renderActions(state);
      viewer.draft.set({ ...DRAFT, correctionIndex: 1 });
      for (const act of [actions.applyDraft, actions.removeBox, actions.undo, actions.redo]) act();
      actions.toggleRejection("cavity");
      expect(sentRequests()).toEqual([]);
      expect(viewer.draft.get()).not.toBeNull();
    },
  );

  test("sends nothing while the box is moving or a finding is taught", () => {
    const { viewer, actions, sentRequests } = renderActions();
    viewer.draft.set({ ...DRAFT, moving: true });
    actions.applyDraft();
    viewer.draft.set(DRAFT);
    viewer.teaching.set(true);
    actions.applyDraft();
    expect(sentRequests()).toEqual([]);
  });
});

describe("removing", () => {
  test("an applied box is withdrawn, a new one only discarded", () => {
    const { viewer, actions, sentRequests } = renderActions();
    viewer.draft.set(DRAFT);
    actions.removeBox();
    expect([viewer.draft.get(), sentRequests()]).toEqual([null, []]);
    viewer.draft.set({ ...DRAFT, correctionIndex: 1 });
    actions.removeBox();
    expect([viewer.draft.get(), sentRequests()]).toEqual([null, [{ kind: "withdraw", correctionIndex: 1 }]]);
  });

  test("undo and redo send nothing if there is nothing to undo or redo", () => {
    const { actions, sentRequests } = renderActions();
    actions.redo();
    expect(sentRequests()).toEqual([]);
    actions.undo();
    expect(sentRequests()).toEqual([{ kind: "undo" }]);
  });

  test("Escape first discards the box, then returns to the current state", () => {
    const { viewer, actions } = renderActions();
    viewer.historyStep.set(1);
    viewer.draft.set(DRAFT);
    actions.discardDraft();
    expect([viewer.draft.get(), viewer.historyStep.get()]).toEqual([null, 1]);
    actions.discardDraft();
    expect(viewer.historyStep.get()).toBeNull();
  });
});

test("the history goes from the current state back to step zero", () => {
  const { viewer, actions } = renderActions();
  viewer.draft.set(DRAFT);
  const stops = [-1, -1, -1, -1, 1, 1, 1, 1].map((by) => {
    actions.moveInHistory(by);
    return viewer.historyStep.get();
  });
  expect(stops).toEqual([2, 1, 0, 0, 1, 2, null, null]);
  expect(viewer.draft.get()).toBeNull();
});
