import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { CAVITY_BOX, CHECK, resetBrowser } from "../test/fixtures";
import { createViewerState, type BoxDraft } from "../film/viewerState";
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

/** Somebody has drawn a box, and the model tells what it sees in it. */
function drawn(changed: Partial<BoxDraft> = {}, { locked = false, teaching = false } = {}) {
  const viewer = createViewerState("f1");
  const live = new LiveCheck("s1");
  viewer.teaching.set(teaching);
  viewer.draft.set({ ...DRAFT, ...changed });
  const { result } = renderHook(() => useMismatchWarning(viewer, live, locked));
  const tell = (check = CHECK, box = CAVITY_BOX, concept = "cavity") =>
    act(() => live.result.set({ request: { box, concept }, check }));
  const forget = () => act(() => live.result.set(null));
  return {
    viewer,
    tell,
    forget,
    warning: () => result.current.warning,
    settle: () => act(() => result.current.setWarning(null)),
  };
}

describe("a doubt is raised before anything is applied", () => {
  test("as soon as the hand rests and the model sees something else", () => {
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

  test("about a box that was applied and then moved, as a change of that box", () => {
    const { tell, warning } = drawn({ correctionIndex: 2 });
    tell();
    expect(warning()?.request).toMatchObject({ kind: "redraw", correctionIndex: 2 });
  });

  test("once: whoever settled it is not asked again about the same box", () => {
    const { tell, warning, settle } = drawn();
    tell();
    settle();
    tell();
    expect(warning()).toBeNull();
  });

  test("again when the same box is drawn anew", () => {
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

describe("no doubt is raised", () => {
  test("while the hand is still on the box", () => {
    const { tell, warning } = drawn({ moving: true });
    tell();
    expect(warning()).toBeNull();
  });

  test("about a box that was placed by keys, or only selected: Enter says that it is where it should be", () => {
    const { tell, warning } = drawn({ drawnByPointer: false });
    tell();
    expect(warning()).toBeNull();
  });

  test("about a box that says not here", () => {
    const { tell, warning } = drawn({ positive: false });
    tell();
    expect(warning()).toBeNull();
  });

  test("where the model agrees", () => {
    const { tell, warning } = drawn();
    tell({ ...CHECK, mismatch: false });
    expect(warning()).toBeNull();
  });

  test("from an answer about another box, or about another finding", () => {
    const { tell, warning } = drawn();
    tell(CHECK, { ...CAVITY_BOX, x1: 401 });
    tell(CHECK, CAVITY_BOX, "nodule");
    expect(warning()).toBeNull();
  });

  test.each([{ locked: true }, { teaching: true }])("where a box corrects nothing: %j", (state) => {
    const { tell, warning } = drawn({}, state);
    tell();
    expect(warning()).toBeNull();
  });
});
