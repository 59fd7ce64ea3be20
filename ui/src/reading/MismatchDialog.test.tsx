import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { CAVITY_BOX, CHECK, contextOf, renderInContext, resetBrowser, stubDialogs } from "../test/fixtures";
import { forManyCases } from "../test/randomCases";
import { cropAround, MismatchDialog } from "./MismatchDialog";
import { requestAfterDecision } from "./useMismatchWarning";
import type { MismatchWarning } from "./useStudyData";

const WARNING: MismatchWarning = {
  check: CHECK,
  request: {
    kind: "box",
    statement: { box: CAVITY_BOX, concept: "cavity", positive: true },
    confirmed: false,
    reason: null,
  },
};

function open(warning = WARNING, context = contextOf()) {
  const handlers = { onCancel: vi.fn(), onChange: vi.fn(), onConfirm: vi.fn() };
  renderInContext(<MismatchDialog warning={warning} {...handlers} />, context);
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

describe("the mismatch dialog", () => {
  test("is an alert dialog for screen readers", () => {
    open();
    const dialog = screen.getByRole("alertdialog", { name: "The model sees something else here" });
    expect((dialog as HTMLDialogElement).open).toBe(true);
  });

  test("names the claimed finding, the model's finding, both scores, and says that nothing was applied", () => {
    open();
    expect(document.querySelector(".lead")?.textContent).toBe(
      "You said Cavity. Inside this box the model sees Pleural effusion (0.61 against 0.22). Nothing was applied.",
    );
  });

  test("shows the lead and the threshold", () => {
    open();
    expect(screen.getByText(/It leads by 0\.390; the check warns above 0\.050\./)).toBeTruthy();
  });

  test("says if the thresholds are not calibrated", () => {
    open();
    expect(screen.queryByText(/thresholds are not calibrated/)).toBeNull();
    cleanup();
    open({ ...WARNING, check: { ...CHECK, calibrated: false } });
    expect(screen.getByText(/thresholds are not calibrated/)).toBeTruthy();
  });

  test("shows the maps of both findings around the box", () => {
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

describe("the person can decide", () => {
  test("to cancel, by button or by Escape", () => {
    const { onCancel, onChange, onConfirm } = open();
    fireEvent.click(button("Cancel"));
    fireEvent(screen.getByRole("alertdialog"), new Event("cancel", { cancelable: true }));
    expect(onCancel).toHaveBeenCalledTimes(2);
    expect(onChange).not.toHaveBeenCalled();
    expect(onConfirm).not.toHaveBeenCalled();
  });

  test("to change to the model's finding", () => {
    const { onChange } = open();
    fireEvent.click(button("Change it to Pleural effusion"));
    expect(onChange).toHaveBeenCalledExactlyOnceWith("effusion");
  });

  test("to choose a third finding", () => {
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

  test("to apply it anyway with a reason", () => {
    const { onConfirm } = open();
    write("  Seen on CT. ");
    fireEvent.click(button("Apply anyway"));
    expect(onConfirm).toHaveBeenCalledExactlyOnceWith("Seen on CT.");
  });

  test("only to cancel while a step is being saved", () => {
    open(WARNING, contextOf({ saving: true }));
    write("Seen on CT.");
    const able = ["Cancel", "Change it to Pleural effusion", "Apply anyway"].map(
      (name) => !button(name).disabled,
    );
    expect(able).toEqual([true, false, false]);
  });
});

describe("the request after the decision", () => {
  test("repeats a confirmed box with its reason", () => {
    expect(requestAfterDecision(WARNING, { reason: "Seen on CT." })).toEqual({
      ...WARNING.request,
      confirmed: true,
      reason: "Seen on CT.",
    });
  });

  test("does not confirm a changed box, so the model may warn again", () => {
    const confirmed: MismatchWarning = {
      ...WARNING,
      request: { ...WARNING.request, confirmed: true, reason: "Seen on CT." },
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

  test("is larger around a small box, so that the anatomy can be recognised", () => {
    const { width } = cropAround({ x1: 1000, y1: 800, x2: 1004, y2: 804 }, 2000, 1600);
    expect(width).toBe(520);
  });

  test("shows all of a box of any shape, and nothing beside the film where the film has room for a square", () => {
    forManyCases((random) => {
      const size = { width: random.between(300, 3000), height: random.between(300, 3000) };
      const [x1, y1] = [random.between(0, size.width * 0.9), random.between(0, size.height * 0.9)];
      const box = { x1, y1, x2: random.between(x1, size.width), y2: random.between(y1, size.height) };
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
