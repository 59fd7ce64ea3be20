import { act, cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { CAVITY_BOX, CHECK, freshBrowser } from "../test/scene";
import { createDesk, type Edit } from "../film/desk";
import { LiveCheck } from "./liveCheck";
import { useDoubt } from "./useDoubt";

const EDIT: Edit = {
  box: CAVITY_BOX,
  concept: "cavity",
  positive: true,
  number: null,
  moving: false,
  byHand: true,
};

beforeEach(() => freshBrowser());
afterEach(() => cleanup());

/** Somebody has drawn a box, and the model tells what it sees in it. */
function drawn(changed: Partial<Edit> = {}, { locked = false, teaching = false } = {}) {
  const desk = createDesk("f1");
  const live = new LiveCheck("s1");
  desk.teaching.set(teaching);
  desk.edit.set({ ...EDIT, ...changed });
  const { result } = renderHook(() => useDoubt(desk, live, locked));
  const tell = (check = CHECK, box = CAVITY_BOX, concept = "cavity") =>
    act(() => live.answer.set({ asked: { box, concept }, check }));
  const forget = () => act(() => live.answer.set(null));
  return {
    desk,
    tell,
    forget,
    doubt: () => result.current.doubt,
    settle: () => act(() => result.current.setDoubt(null)),
  };
}

describe("a doubt is raised before anything is applied", () => {
  test("as soon as the hand rests and the model sees something else", () => {
    const { tell, doubt } = drawn();
    tell();
    expect(doubt()).toEqual({
      check: CHECK,
      asked: {
        kind: "box",
        said: { box: CAVITY_BOX, concept: "cavity", positive: true },
        confirmed: false,
        reason: null,
      },
    });
  });

  test("about a box that was applied and then moved, as a change of that box", () => {
    const { tell, doubt } = drawn({ number: 2 });
    tell();
    expect(doubt()?.asked).toMatchObject({ kind: "redraw", number: 2 });
  });

  test("once: whoever settled it is not asked again about the same box", () => {
    const { tell, doubt, settle } = drawn();
    tell();
    settle();
    tell();
    expect(doubt()).toBeNull();
  });

  test("again when the same box is drawn anew", () => {
    const { desk, tell, forget, doubt, settle } = drawn();
    tell();
    settle();
    act(() => desk.edit.set(null));
    forget();
    act(() => desk.edit.set(EDIT));
    tell();
    expect(doubt()).not.toBeNull();
  });
});

describe("no doubt is raised", () => {
  test("while the hand is still on the box", () => {
    const { tell, doubt } = drawn({ moving: true });
    tell();
    expect(doubt()).toBeNull();
  });

  test("about a box that was placed by keys, or only selected: Enter says that it is where it should be", () => {
    const { tell, doubt } = drawn({ byHand: false });
    tell();
    expect(doubt()).toBeNull();
  });

  test("about a box that says not here", () => {
    const { tell, doubt } = drawn({ positive: false });
    tell();
    expect(doubt()).toBeNull();
  });

  test("where the model agrees", () => {
    const { tell, doubt } = drawn();
    tell({ ...CHECK, mismatch: false });
    expect(doubt()).toBeNull();
  });

  test("from an answer about another box, or about another finding", () => {
    const { tell, doubt } = drawn();
    tell(CHECK, { ...CAVITY_BOX, x1: 401 });
    tell(CHECK, CAVITY_BOX, "nodule");
    expect(doubt()).toBeNull();
  });

  test.each([{ locked: true }, { teaching: true }])("where a box corrects nothing: %j", (state) => {
    const { tell, doubt } = drawn({}, state);
    tell();
    expect(doubt()).toBeNull();
  });
});
