import { cleanup, renderHook } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Study } from "../api/types";
import { boxed, CAVITY_BOX, freshBrowser, readingOf, rejected, study } from "../test/scene";
import { createDesk, type Edit } from "../film/desk";
import type { StepAsked } from "./steps";
import { useActs } from "./useActs";

const EDIT: Edit = { box: CAVITY_BOX, concept: "cavity", positive: true, number: null, moving: false };
/** The same, drawn by hand. */
const DRAWN = { ...EDIT, byHand: true };
const LARGE = { x1: 100, y1: 100, x2: 900, y2: 900 };
const CORRECTED = study({
  revision: 3,
  can_undo: true,
  corrections: [boxed({ box: LARGE, kind: "not_box", concept: "nodule" }), boxed(), rejected("effusion")],
});

beforeEach(() => freshBrowser());
afterEach(() => cleanup());

function handsOn({
  now = CORRECTED,
  locked = false,
  busy = false,
}: { now?: Study; locked?: boolean; busy?: boolean } = {}) {
  const desk = createDesk("f1");
  desk.choice.set((choice) => ({ ...choice, concept: "cavity" }));
  // The step succeeds at once.
  const step = vi.fn((_: StepAsked, done?: () => void) => done?.());
  const { result } = renderHook(() =>
    useActs({ desk, reading: readingOf({ study: now }), step, locked, busy }),
  );
  return { desk, step, acts: result.current, asked: () => step.mock.calls.map(([one]) => one) };
}

describe("drawing", () => {
  test("makes a box for the chosen finding that says it is here, at rest once the hand lets go", () => {
    const { desk, acts } = handsOn();
    acts.draw({ ...CAVITY_BOX, x1: 400.123 }, false, true);
    expect(desk.edit.get()).toEqual({ ...DRAWN, box: { ...CAVITY_BOX, x1: 400.123 }, moving: true });
    acts.draw({ ...CAVITY_BOX, x1: 400.123 }, true, true);
    expect(desk.edit.get()).toEqual({ ...DRAWN, box: { ...CAVITY_BOX, x1: 400.1 } });
  });

  test("over a box in hand keeps what that one says, unless it is another box", () => {
    const { desk, acts } = handsOn();
    desk.edit.set({ ...EDIT, concept: "nodule", positive: false, number: 0 });
    acts.draw(LARGE, true, false);
    expect(desk.edit.get()).toEqual({ ...DRAWN, box: LARGE, concept: "nodule", positive: false, number: 0 });
    acts.draw(LARGE, true, true);
    expect(desk.edit.get()).toEqual({ ...DRAWN, box: LARGE });
  });

  test("does nothing where nothing may be corrected", () => {
    const { desk, acts } = handsOn({ locked: true });
    acts.draw(CAVITY_BOX, true, true);
    expect(desk.edit.get()).toBeNull();
  });
});

describe("a click on the film", () => {
  test("selects the smallest box under the pointer, with what it says", () => {
    const { desk, acts } = handsOn();
    acts.pick(500, 400);
    expect(desk.edit.get()).toEqual({ ...EDIT, number: 1 });
    acts.pick(150, 150);
    expect(desk.edit.get()).toEqual({ ...EDIT, box: LARGE, concept: "nodule", positive: false, number: 0 });
  });

  test("beside every box puts the one in hand away", () => {
    const { desk, acts } = handsOn();
    desk.edit.set(EDIT);
    acts.pick(1900, 1500);
    expect(desk.edit.get()).toBeNull();
  });
});

describe("applying", () => {
  test("sends a new box unconfirmed, and clears the desk once it was taken", () => {
    const { desk, acts, asked } = handsOn();
    desk.edit.set(EDIT);
    acts.apply();
    const said = { box: CAVITY_BOX, concept: "cavity", positive: true };
    expect(asked()).toEqual([{ kind: "box", said, confirmed: false, reason: null }]);
    expect(desk.edit.get()).toBeNull();
  });

  test("sends a box that was applied before as a change of that one", () => {
    const { desk, acts, asked } = handsOn();
    desk.edit.set({ ...EDIT, number: 1 });
    acts.apply();
    expect(asked()).toMatchObject([{ kind: "redraw", number: 1 }]);
  });

  test("keeps the box on the desk until it was taken", () => {
    const { desk, step, acts } = handsOn();
    step.mockImplementation(() => undefined);
    desk.edit.set(EDIT);
    acts.apply();
    expect(desk.edit.get()).toEqual(EDIT);
  });

  test.each([{ locked: true }, { busy: true }])(
    "sends nothing while the study is not to be changed: %j",
    (state) => {
      const { desk, acts, asked } = handsOn(state);
      desk.edit.set({ ...EDIT, number: 1 });
      for (const act of [acts.apply, acts.remove, acts.undo, acts.redo]) act();
      acts.toggleRejection("cavity");
      expect(asked()).toEqual([]);
      expect(desk.edit.get()).not.toBeNull();
    },
  );

  test("sends nothing while the hand is on the box, or while a finding is taught", () => {
    const { desk, acts, asked } = handsOn();
    desk.edit.set({ ...EDIT, moving: true });
    acts.apply();
    desk.edit.set(EDIT);
    desk.teaching.set(true);
    acts.apply();
    expect(asked()).toEqual([]);
  });
});

describe("taking away", () => {
  test("an applied box is withdrawn, a new one only put away", () => {
    const { desk, acts, asked } = handsOn();
    desk.edit.set(EDIT);
    acts.remove();
    expect([desk.edit.get(), asked()]).toEqual([null, []]);
    desk.edit.set({ ...EDIT, number: 1 });
    acts.remove();
    expect([desk.edit.get(), asked()]).toEqual([null, [{ kind: "withdraw", number: 1 }]]);
  });

  test("undo and redo ask for nothing where there is nothing to undo or redo", () => {
    const { acts, asked } = handsOn();
    acts.redo();
    expect(asked()).toEqual([]);
    acts.undo();
    expect(asked()).toEqual([{ kind: "undo" }]);
  });

  test("Escape puts the box away first, and only then goes back to now", () => {
    const { desk, acts } = handsOn();
    desk.back.set(1);
    desk.edit.set(EDIT);
    acts.discard();
    expect([desk.edit.get(), desk.back.get()]).toEqual([null, 1]);
    acts.discard();
    expect(desk.back.get()).toBeNull();
  });
});

test("looking back goes from now to how the model first read the film, and no further", () => {
  const { desk, acts } = handsOn();
  desk.edit.set(EDIT);
  const stops = [-1, -1, -1, -1, 1, 1, 1, 1].map((by) => {
    acts.lookBack(by);
    return desk.back.get();
  });
  expect(stops).toEqual([2, 1, 0, 0, 1, 2, null, null]);
  expect(desk.edit.get()).toBeNull();
});
