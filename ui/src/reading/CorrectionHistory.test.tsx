import { act, cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { WORDS } from "../i18n/words";
import { settings } from "../settings/settings";
import {
  boxed,
  CHECK,
  contextOf,
  rejected,
  renderInContext,
  resetBrowser,
  stepOf,
  study,
  studyDataOf,
} from "../test/fixtures";
import { CorrectionHistory, describeChanges } from "./CorrectionHistory";

beforeEach(() => resetBrowser());
afterEach(() => cleanup());

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });
const CORRECTIONS = [
  boxed(),
  boxed({ kind: "not_box", concept: "nodule", check: CHECK }),
  rejected("effusion"),
];

describe("undo and redo", () => {
  test("are enabled only if there is something to undo or redo", () => {
    const studyData = studyDataOf({ study: study({ can_undo: false, can_redo: true }) });
    renderInContext(<CorrectionHistory />, contextOf({ studyData }));
    expect([button("Undo").disabled, button("Redo").disabled]).toEqual([true, false]);
    cleanup();
    const other = studyDataOf({ study: study({ can_undo: true, can_redo: false }) });
    renderInContext(<CorrectionHistory />, contextOf({ studyData: other }));
    expect([button("Undo").disabled, button("Redo").disabled]).toEqual([false, true]);
  });

  test.each([{ saving: true }, { locked: true }])(
    "are disabled while the study cannot be changed: %j",
    (state) => {
      const studyData = studyDataOf({ study: study({ can_undo: true, can_redo: true }) });
      renderInContext(<CorrectionHistory />, contextOf({ studyData, ...state }));
      expect([button("Undo").disabled, button("Redo").disabled]).toEqual([true, true]);
    },
  );

  test("call their actions", () => {
    const context = contextOf({
      studyData: studyDataOf({ study: study({ can_undo: true, can_redo: true }) }),
    });
    renderInContext(<CorrectionHistory />, context);
    fireEvent.click(button("Undo"));
    expect([context.actions.undo.mock.calls.length, context.actions.redo.mock.calls.length]).toEqual([1, 0]);
    fireEvent.click(button("Redo"));
    expect([context.actions.undo.mock.calls.length, context.actions.redo.mock.calls.length]).toEqual([1, 1]);
  });
});

describe("corrections in force", () => {
  test("are empty at first, with a hint how to make one", () => {
    renderInContext(<CorrectionHistory />);
    expect(screen.getByText(/No corrections yet/)).toBeTruthy();
  });

  test("are listed as sentences, with a mark where the model objected", () => {
    renderInContext(
      <CorrectionHistory />,
      contextOf({ studyData: studyDataOf({ study: study({ corrections: CORRECTIONS }) }) }),
    );
    const texts = screen.getAllByRole("listitem").map((item) => item.textContent.replace("✕", ""));
    expect(texts).toEqual([
      "1. Cavity is here",
      "2. Nodule is not hereagainst the model",
      "3. Pleural effusion is not on this film",
    ]);
  });

  test("can be selected if they have a box, and removed one by one", () => {
    const context = contextOf({ studyData: studyDataOf({ study: study({ corrections: CORRECTIONS }) }) });
    renderInContext(<CorrectionHistory />, context);
    fireEvent.click(button("Select: Nodule is not here"));
    expect(context.actions.selectCorrection).toHaveBeenCalledExactlyOnceWith(1);
    expect(screen.queryByRole("button", { name: /^Select: Pleural effusion/ })).toBeNull();
    fireEvent.click(button("Remove: Pleural effusion is not on this film"));
    expect(context.takeStep).toHaveBeenCalledExactlyOnceWith({ kind: "withdraw", correctionIndex: 2 });
  });
});

describe("steps", () => {
  const STEPS = [
    stepOf({ step: 1 }),
    stepOf({ step: 2, correction: rejected("nodule"), reason: "Seen on CT." }),
    stepOf({
      step: 3,
      kind: "undone",
      correction: rejected("nodule"),
      after: { active_tb: 0.7, healthy: 0.3 },
    }),
    stepOf({ step: 4, kind: "undone", about: "withdrawn" }),
  ];
  const scene = () =>
    contextOf({
      studyData: studyDataOf({ study: study({ revision: 4, corrections: [boxed()] }), steps: STEPS }),
    });
  const steps = () => [...document.querySelectorAll(".steps > li")];
  const current = () => steps().findIndex((element) => element.getAttribute("aria-current") === "step");

  test("are listed newest first, with action, author and reason", () => {
    renderInContext(<CorrectionHistory />, scene());
    expect(steps().map((element) => element.querySelector("span")?.textContent)).toEqual([
      "Undone: Removed: Cavity is here",
      "Undone: Nodule is not on this film",
      "Nodule is not on this film",
      "Cavity is here",
    ]);
    expect(steps()[2]?.querySelector("q")?.textContent).toBe("Seen on CT.");
    expect(steps()[3]?.textContent).toContain("grace, Mar 9, 2026");
  });

  test("show the changed probabilities", () => {
    renderInContext(<CorrectionHistory />, scene());
    expect(steps()[3]?.textContent).toContain("Active TB 70% → 90%");
    expect(steps()[1]?.textContent).toContain("no probability changed");
  });

  test("are hidden before the first step", () => {
    renderInContext(<CorrectionHistory />);
    expect(screen.queryByText("History")).toBeNull();
  });

  test("mark the current step and cannot go beyond it", () => {
    const context = scene();
    renderInContext(<CorrectionHistory />, context);
    expect(screen.getByText("Current state")).toBeTruthy();
    expect(current()).toBe(0);
    expect([button("One step back").disabled, button("One step forward").disabled]).toEqual([false, true]);
    fireEvent.click(button("One step back"));
    expect(context.actions.moveInHistory).toHaveBeenCalledExactlyOnceWith(-1);
  });

  test("can be viewed back to the state before any correction", () => {
    const context = scene();
    renderInContext(<CorrectionHistory />, context);
    act(() => context.viewer.historyStep.set(2));
    expect(screen.getByText("Step 2 of 4")).toBeTruthy();
    expect(current()).toBe(2);
    act(() => context.viewer.historyStep.set(0));
    expect(screen.getByText("Before any correction")).toBeTruthy();
    expect(current()).toBe(-1);
    expect([button("One step back").disabled, button("One step forward").disabled]).toEqual([true, false]);
    fireEvent.click(button("One step forward"));
    expect(context.actions.moveInHistory).toHaveBeenCalledExactlyOnceWith(1);
  });
});

describe("the probabilities that a step changed", () => {
  const words = WORDS.en.reading;
  const describe = (before: Record<string, number>, after: Record<string, number>) =>
    describeChanges(before, after, words, settings.get());

  test("are those of the two classes that changed most, largest first", () => {
    const before = { healthy: 0.5, active_tb: 0.3, sick_non_tb: 0.2 };
    const after = { healthy: 0.4, active_tb: 0.55, sick_non_tb: 0.05 };
    expect(describe(before, after)).toBe("Active TB 30% → 55%, Sick non TB 20% → 5%");
  });

  test("are none below half a percent", () => {
    expect(describe({ healthy: 0.5, active_tb: 0.5 }, { healthy: 0.503, active_tb: 0.497 })).toBe(
      "no probability changed",
    );
  });

  test("start at zero for a new class", () => {
    expect(describe({}, { healthy: 0.4 })).toBe("Healthy 0% → 40%");
  });
});
