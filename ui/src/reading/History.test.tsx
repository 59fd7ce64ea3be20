import { act, cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import {
  boxed,
  CHECK,
  freshBrowser,
  readingOf,
  rejected,
  show,
  sittingOf,
  stepTaken,
  study,
} from "../test/scene";
import { settings } from "../settings/settings";
import { WORDS } from "../words/words";
import { History, moved } from "./History";

beforeEach(() => freshBrowser());
afterEach(() => cleanup());

const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });
const CORRECTIONS = [
  boxed(),
  boxed({ kind: "not_box", concept: "nodule", check: CHECK }),
  rejected("effusion"),
];

describe("undo and redo", () => {
  test("can be pressed only where there is something to undo or to redo", () => {
    const reading = readingOf({ study: study({ can_undo: false, can_redo: true }) });
    show(<History />, sittingOf({ reading }));
    expect([button("Undo").disabled, button("Redo").disabled]).toEqual([true, false]);
    cleanup();
    const other = readingOf({ study: study({ can_undo: true, can_redo: false }) });
    show(<History />, sittingOf({ reading: other }));
    expect([button("Undo").disabled, button("Redo").disabled]).toEqual([false, true]);
  });

  test.each([{ busy: true }, { locked: true }])(
    "cannot be pressed while the study is not to be changed: %j",
    (state) => {
      const reading = readingOf({ study: study({ can_undo: true, can_redo: true }) });
      show(<History />, sittingOf({ reading, ...state }));
      expect([button("Undo").disabled, button("Redo").disabled]).toEqual([true, true]);
    },
  );

  test("are what they say", () => {
    const sitting = sittingOf({ reading: readingOf({ study: study({ can_undo: true, can_redo: true }) }) });
    show(<History />, sitting);
    fireEvent.click(button("Undo"));
    expect([sitting.acts.undo.mock.calls.length, sitting.acts.redo.mock.calls.length]).toEqual([1, 0]);
    fireEvent.click(button("Redo"));
    expect([sitting.acts.undo.mock.calls.length, sitting.acts.redo.mock.calls.length]).toEqual([1, 1]);
  });
});

describe("corrections in force", () => {
  test("are none at first, and it is told how to make one", () => {
    show(<History />);
    expect(screen.getByText(/Nobody has corrected this reading/)).toBeTruthy();
  });

  test("are told one by one as somebody would say them, with a mark where the model objected", () => {
    show(<History />, sittingOf({ reading: readingOf({ study: study({ corrections: CORRECTIONS }) }) }));
    const told = screen.getAllByRole("listitem").map((item) => item.textContent.replace("✕", ""));
    expect(told).toEqual([
      "1. Cavity is here",
      "2. Nodule is not hereagainst the model",
      "3. Pleural effusion is not on this film",
    ]);
  });

  test("can be selected where they have a box, and removed each by its own number", () => {
    const sitting = sittingOf({ reading: readingOf({ study: study({ corrections: CORRECTIONS }) }) });
    show(<History />, sitting);
    fireEvent.click(button("Select: Nodule is not here"));
    expect(sitting.acts.select).toHaveBeenCalledExactlyOnceWith(1);
    expect(screen.queryByRole("button", { name: /^Select: Pleural effusion/ })).toBeNull();
    fireEvent.click(button("Remove: Pleural effusion is not on this film"));
    expect(sitting.step).toHaveBeenCalledExactlyOnceWith({ kind: "withdraw", number: 2 });
  });
});

describe("steps", () => {
  const STEPS = [
    stepTaken({ step: 1 }),
    stepTaken({ step: 2, correction: rejected("nodule"), reason: "Seen on CT." }),
    stepTaken({
      step: 3,
      kind: "undone",
      correction: rejected("nodule"),
      after: { active_tb: 0.7, healthy: 0.3 },
    }),
    stepTaken({ step: 4, kind: "undone", about: "withdrawn" }),
  ];
  const scene = () =>
    sittingOf({
      reading: readingOf({ study: study({ revision: 4, corrections: [boxed()] }), steps: STEPS }),
    });
  const steps = () => [...document.querySelectorAll(".steps > li")];
  const current = () => steps().findIndex((one) => one.getAttribute("aria-current") === "step");

  test("are told the newest first, each with what was done, by whom and why", () => {
    show(<History />, scene());
    expect(steps().map((one) => one.querySelector("span")?.textContent)).toEqual([
      "Undone: Removed: Cavity is here",
      "Undone: Nodule is not on this film",
      "Nodule is not on this film",
      "Cavity is here",
    ]);
    expect(steps()[2]?.querySelector("q")?.textContent).toBe("Seen on CT.");
    expect(steps()[3]?.textContent).toContain("grace, Mar 9, 2026");
  });

  test("say what they moved", () => {
    show(<History />, scene());
    expect(steps()[3]?.textContent).toContain("Active TB 70% → 90%");
    expect(steps()[1]?.textContent).toContain("no probability moved");
  });

  test("are not told before there is one", () => {
    show(<History />);
    expect(screen.queryByText("History")).toBeNull();
  });

  test("mark where one stands; on goes no further than now", () => {
    const sitting = scene();
    show(<History />, sitting);
    expect(screen.getByText("As it stands")).toBeTruthy();
    expect(current()).toBe(0);
    expect([button("One step back").disabled, button("One step on").disabled]).toEqual([false, true]);
    fireEvent.click(button("One step back"));
    expect(sitting.acts.lookBack).toHaveBeenCalledExactlyOnceWith(-1);
  });

  test("can be looked back at, down to how the model first read the film", () => {
    const sitting = scene();
    show(<History />, sitting);
    act(() => sitting.desk.back.set(2));
    expect(screen.getByText("Step 2 of 4")).toBeTruthy();
    expect(current()).toBe(2);
    act(() => sitting.desk.back.set(0));
    expect(screen.getByText("As the model read it")).toBeTruthy();
    expect(current()).toBe(-1);
    expect([button("One step back").disabled, button("One step on").disabled]).toEqual([true, false]);
    fireEvent.click(button("One step on"));
    expect(sitting.acts.lookBack).toHaveBeenCalledExactlyOnceWith(1);
  });
});

describe("what a step moved", () => {
  const words = WORDS.en.reading;
  const told = (before: Record<string, number>, after: Record<string, number>) =>
    moved(before, after, words, settings.get());

  test("is told for the two classes that moved most, the most moved one first", () => {
    const before = { healthy: 0.5, active_tb: 0.3, sick_non_tb: 0.2 };
    const after = { healthy: 0.4, active_tb: 0.55, sick_non_tb: 0.05 };
    expect(told(before, after)).toBe("Active TB 30% → 55%, Sick non TB 20% → 5%");
  });

  test("is nothing where no class moved by half a per cent", () => {
    expect(told({ healthy: 0.5, active_tb: 0.5 }, { healthy: 0.503, active_tb: 0.497 })).toBe(
      "no probability moved",
    );
  });

  test("is told from nought for a class that was not there before", () => {
    expect(told({}, { healthy: 0.4 })).toBe("Healthy 0% → 40%");
  });
});
