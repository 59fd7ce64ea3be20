import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { type BoxDraft, createViewerState } from "../film/viewerState";
import { CAVITY_BOX, CHECK, resetBrowser } from "../test/fixtures";
import { LiveCheck } from "./liveCheck";
import { useMismatchWarning } from "./useMismatchWarning";

const DRAFT: BoxDraft = {
  box: CAVITY_BOX,
  concept: "cavity",
  positive: true,
  correctionIndex: null,
  moving: false,
  drawnByPointer: true,
};

beforeEach(() => resetBrowser());
afterEach(() => cleanup());

/** A drawn box, and functions to set the result of its check. */
function drawn(changed: Partial<BoxDraft> = {}, { locked = false, teaching = false } = {}) {
  const viewer = createViewerState("f1");
  const liveCheck = new LiveCheck("s1");
  viewer.teaching.set(teaching);
  viewer.draft.set({ ...DRAFT, ...changed });
  const { result } = renderHook(() => useMismatchWarning(viewer, liveCheck, locked));
  const tell = (check = CHECK, box = CAVITY_BOX, concept = "cavity") =>
    act(() => liveCheck.result.set({ request: { box, concept }, check }));
  const forget = () => act(() => liveCheck.result.set(null));
  return {
    viewer,
    tell,
    forget,
    warning: () => result.current.warning,
    settle: () => act(() => result.current.setWarning(null)),
  };
}

describe("a warning appears before anything is applied", () => {
  test("when the pointer is released and the model sees another finding", () => {
    const { tell, warning } = drawn();
    tell();
    expect(warning()).toEqual({
      check: CHECK,
      request: {
        kind: "box",
        statement: { box: CAVITY_BOX, concept: "cavity", positive: true },
        confirmed: false,
        reason: null,
      },
    });
  });

  test("for an applied box that was moved, as a redraw of that box", () => {
    const { tell, warning } = drawn({ correctionIndex: 2 });
    tell();
    expect(warning()?.request).toMatchObject({ kind: "redraw", correctionIndex: 2 });
  });

  test("only once for the same box", () => {
    const { tell, warning, settle } = drawn();
    tell();
    settle();
    tell();
    expect(warning()).toBeNull();
  });

  test("again when the same box is drawn again", () => {
    const { viewer, tell, forget, warning, settle } = drawn();
    tell();
    settle();
    act(() => viewer.draft.set(null));
    forget();
    act(() => viewer.draft.set(DRAFT));
    tell();
    expect(warning()).not.toBeNull();
  });
});

describe("no warning appears", () => {
  test("while the pointer is still down", () => {
    const { tell, warning } = drawn({ moving: true });
    tell();
    expect(warning()).toBeNull();
  });

  test("for a box placed by keys or only selected, before Enter", () => {
    const { tell, warning } = drawn({ drawnByPointer: false });
    tell();
    expect(warning()).toBeNull();
  });

  test("for a “not here” box", () => {
    const { tell, warning } = drawn({ positive: false });
    tell();
    expect(warning()).toBeNull();
  });

  test("if the model agrees", () => {
    const { tell, warning } = drawn();
    tell({ ...CHECK, mismatch: false });
    expect(warning()).toBeNull();
  });

  test("from a result for another box or finding", () => {
    const { tell, warning } = drawn();
    tell(CHECK, { ...CAVITY_BOX, x1: 401 });
    tell(CHECK, CAVITY_BOX, "nodule");
    expect(warning()).toBeNull();
  });

  test.each([{ locked: true }, { teaching: true }])("when boxes are no corrections: %j", (state) => {
    const { tell, warning } = drawn({}, state);
    tell();
    expect(warning()).toBeNull();
  });
});
