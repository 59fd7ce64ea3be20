import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { forManyCases } from "../test/randomCases";
import { CAVITY_BOX, CHECK, resetBrowser, renderInContext, contextOf, stubDialogs } from "../test/fixtures";
import { MismatchDialog, cropAround } from "./MismatchDialog";
import type { MismatchWarning } from "./useStudyData";
import { requestAfterDecision } from "./useMismatchWarning";

const DOUBT: MismatchWarning = {
  check: CHECK,
  request: {
    kind: "box",
    statement: { box: CAVITY_BOX, concept: "cavity", positive: true },
    confirmed: false,
    reason: null,
  },
};

function open(doubt = DOUBT, context = contextOf()) {
  const handlers = { onCancel: vi.fn(), onChange: vi.fn(), onConfirm: vi.fn() };
  renderInContext(<MismatchDialog warning={doubt} {...handlers} />, context);
  return handlers;
}
const button = (name: string) => screen.getByRole<HTMLButtonElement>("button", { name });
const reason = () => screen.getByRole("textbox", { name: /^Why you are right/ });
const write = (text: string) => fireEvent.change(reason(), { target: { value: text } });

beforeEach(() => {
  resetBrowser();
  stubDialogs();
});
afterEach(() => cleanup());

describe("the doubt", () => {
  test("is a dialog that is told to screen readers at once", () => {
    open();
    const dialog = screen.getByRole("alertdialog", { name: "The model sees something else here" });
    expect((dialog as HTMLDialogElement).open).toBe(true);
  });

  test("says what was claimed, what the model sees instead and how clearly, and that nothing was applied", () => {
    open();
    expect(document.querySelector(".lead")?.textContent).toBe(
      "You said Cavity. Inside this box the model sees Pleural effusion (0.61 against 0.22). Nothing was applied.",
    );
  });

  test("says by how much the other leads, and how much would be allowed", () => {
    open();
    expect(screen.getByText(/It leads by 0\.390; the check warns above 0\.050\./)).toBeTruthy();
  });

  test("says so where the thresholds were never learnt, and only there", () => {
    open();
    expect(screen.queryByText(/thresholds are not calibrated/)).toBeNull();
    cleanup();
    open({ ...DOUBT, check: { ...CHECK, calibrated: false } });
    expect(screen.getByText(/thresholds are not calibrated/)).toBeTruthy();
  });

  test("shows the maps of both findings where the box lies", () => {
    open();
    for (const [title, concept] of [
      ["What you said: Cavity", "cavity"],
      ["What the model sees: Pleural effusion", "effusion"],
    ] as const) {
      const picture = screen.getByRole("img", { name: title });
      const addresses = [...picture.querySelectorAll("image")].map((image) => image.getAttribute("href"));
      expect(addresses[1]).toContain(`/films/f1/maps/${concept}.png?model=m1`);
      const frame = picture.querySelector("rect");
      expect(["x", "y", "width", "height"].map((name) => frame?.getAttribute(name))).toEqual([
        "400",
        "300",
        "200",
        "150",
      ]);
    }
  });
});

describe("what a person can decide", () => {
  test("to cancel, by button or by Escape", () => {
    const { onCancel, onChange, onConfirm } = open();
    fireEvent.click(button("Cancel"));
    fireEvent(screen.getByRole("alertdialog"), new Event("cancel", { cancelable: true }));
    expect(onCancel).toHaveBeenCalledTimes(2);
    expect(onChange).not.toHaveBeenCalled();
    expect(onConfirm).not.toHaveBeenCalled();
  });

  test("to go with the model", () => {
    const { onChange } = open();
    fireEvent.click(button("Change it to Pleural effusion"));
    expect(onChange).toHaveBeenCalledExactlyOnceWith("effusion");
  });

  test("to name a third finding: neither what was said nor what the model sees", () => {
    const { onChange } = open();
    const choices = screen.getAllByRole("option").map((element) => element.textContent);
    expect(choices).toEqual(["…", "Nodule"]);
    expect(button("Change").disabled).toBe(true);
    fireEvent.change(screen.getByRole("combobox"), { target: { value: "nodule" } });
    expect(onChange).not.toHaveBeenCalled(); // arrow keys go through a list one by one
    fireEvent.click(button("Change"));
    expect(onChange).toHaveBeenCalledExactlyOnceWith("nodule");
  });

  test("not to apply it anyway without a reason", () => {
    const { onConfirm } = open();
    expect(button("Apply anyway").disabled).toBe(true);
    write("   ");
    expect(button("Apply anyway").disabled).toBe(true);
    const form = reason().closest("form");
    if (form) fireEvent.submit(form);
    expect(onConfirm).not.toHaveBeenCalled();
  });

  test("to apply it anyway, with a reason that goes along", () => {
    const { onConfirm } = open();
    write("  Seen on CT. ");
    fireEvent.click(button("Apply anyway"));
    expect(onConfirm).toHaveBeenCalledExactlyOnceWith("Seen on CT.");
  });

  test("nothing but to cancel while a step is on its way", () => {
    open(DOUBT, contextOf({ saving: true }));
    write("Seen on CT.");
    const able = ["Cancel", "Change it to Pleural effusion", "Apply anyway"].map(
      (name) => !button(name).disabled,
    );
    expect(able).toEqual([true, false, false]);
  });
});

describe("what is asked for after that", () => {
  test("a confirmed box says the same, with the reason", () => {
    expect(requestAfterDecision(DOUBT, { reason: "Seen on CT." })).toEqual({
      ...DOUBT.request,
      confirmed: true,
      reason: "Seen on CT.",
    });
  });

  test("a changed box is not confirmed: the model may doubt it again", () => {
    const confirmed: MismatchWarning = {
      ...DOUBT,
      request: { ...DOUBT.request, confirmed: true, reason: "Seen on CT." },
    };
    expect(requestAfterDecision(confirmed, { concept: "effusion" })).toEqual({
      kind: "box",
      statement: { box: CAVITY_BOX, concept: "effusion", positive: true },
      confirmed: false,
      reason: null,
    });
  });
});

describe("what is shown around the box", () => {
  test("is square, a bit more than twice the box, with the box in the middle", () => {
    const view = cropAround({ x1: 900, y1: 700, x2: 1200, y2: 900 }, 2000, 1600);
    expect(view).toEqual({ x: 660, y: 410, width: 780, height: 780 });
  });

  test("is larger around a small box, so that one sees where it lies", () => {
    const { width } = cropAround({ x1: 1000, y1: 800, x2: 1004, y2: 804 }, 2000, 1600);
    expect(width).toBe(520);
  });

  test("shows all of a box of any shape, and nothing beside the film where the film has room for a square", () => {
    forManyCases((chance) => {
      const size = { width: chance.between(300, 3000), height: chance.between(300, 3000) };
      const [x1, y1] = [chance.between(0, size.width * 0.9), chance.between(0, size.height * 0.9)];
      const box = { x1, y1, x2: chance.between(x1, size.width), y2: chance.between(y1, size.height) };
      const view = cropAround(box, size.width, size.height);
      const [right, lower] = [view.x + view.width, view.y + view.height];
      const roomy = view.width <= Math.min(size.width, size.height);
      const within = view.x >= 0 && view.y >= 0 && right <= size.width + 1e-6 && lower <= size.height + 1e-6;
      const shown =
        view.x <= box.x1 + 1e-6 &&
        view.y <= box.y1 + 1e-6 &&
        box.x2 <= right + 1e-6 &&
        box.y2 <= lower + 1e-6;
      expect({ box, size, within, shown, square: view.width === view.height }).toEqual({
        box,
        size,
        within: roomy ? true : within,
        shown: true,
        square: true,
      });
    });
  });
});
