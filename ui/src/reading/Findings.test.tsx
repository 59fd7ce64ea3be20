import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import {
  boxed,
  CAVITY_BOX,
  explanation,
  freshBrowser,
  readingOf,
  rejected,
  seen,
  show,
  sittingOf,
  study,
} from "../test/scene";
import type { StepAsked } from "./steps";
import { mapped } from "../film/desk";
import { Findings } from "./Findings";
import { useActs } from "./useActs";
import { type Sitting, SittingContext } from "./sitting";

beforeEach(() => freshBrowser());
afterEach(() => cleanup());

const SEEN = explanation([
  seen("effusion", "Pleural effusion"),
  seen("cavity", "Cavity", { words: "perhaps", strength: 0.4 }),
  seen("nodule", "Nodule", { words: "rejected", rejected: true, strength: null }),
]);
const finding = (name: RegExp) => screen.getByRole("button", { name });
const EFFUSION = /^Pleural effusion /;
const CAVITY = /^Cavity /;

/** The list with hands that do what they are told. */
function AtWork({ sitting, onStep }: { sitting: Sitting; onStep: (asked: StepAsked) => void }) {
  const acts = useActs({ ...sitting, step: onStep });
  return (
    <SittingContext value={{ ...sitting, acts }}>
      <Findings explanation={SEEN} />
    </SittingContext>
  );
}

describe("the list of findings", () => {
  test("keeps the model's order, and says in words how clearly each is seen", () => {
    show(<Findings explanation={SEEN} />);
    const names = ["Pleural effusion clearly seen", "Cavity perhaps", "Nodule rejected"];
    const told = screen.getAllByRole("listitem").map((item) => item.querySelector("button"));
    expect(told).toEqual(names.map((name) => screen.getByRole("button", { name })));
  });

  test("says so where the model knows no findings", () => {
    show(<Findings explanation={explanation([])} />);
    expect(screen.getByText("This model knows no findings.")).toBeTruthy();
  });

  test("strikes a rejected finding through, and no other", () => {
    show(<Findings explanation={SEEN} />);
    expect(screen.getByText("Nodule").classList.contains("struck")).toBe(true);
    expect(screen.getByText("Cavity").classList.contains("struck")).toBe(false);
  });
});

describe("pointing at a finding", () => {
  test("lays its map on the film for as long as the pointer rests there", () => {
    const sitting = sittingOf();
    show(<Findings explanation={SEEN} />, sitting);
    sitting.desk.choice.set((now) => ({ ...now, concept: "effusion" }));
    fireEvent.pointerMove(finding(CAVITY), { pointerType: "mouse" });
    expect(mapped(sitting.desk.choice.get())).toBe("cavity");
    fireEvent.pointerLeave(finding(CAVITY), { pointerType: "mouse" });
    expect(mapped(sitting.desk.choice.get())).toBe("effusion");
  });

  test("takes a hand that moves: a list that slides under the pointer was not pointed at", () => {
    const sitting = sittingOf();
    show(<Findings explanation={SEEN} />, sitting);
    fireEvent.pointerEnter(finding(CAVITY), { pointerType: "mouse" });
    expect(sitting.desk.choice.get().hovered).toBeNull();
  });

  test("takes a mouse: a finger on the glass points at nothing", () => {
    const sitting = sittingOf();
    show(<Findings explanation={SEEN} />, sitting);
    fireEvent.pointerMove(finding(CAVITY), { pointerType: "touch" });
    expect(sitting.desk.choice.get().hovered).toBeNull();
  });
});

describe("choosing a finding", () => {
  const atWork = (sitting = sittingOf()) => {
    const asked: StepAsked[] = [];
    show(<AtWork sitting={sitting} onStep={(one) => asked.push(one)} />, sitting);
    return { asked, desk: sitting.desk };
  };

  test("keeps its map on the film; choosing it again hides the map, and once more shows it", () => {
    const { desk } = atWork();
    const pressed = () => finding(EFFUSION).getAttribute("aria-pressed");
    fireEvent.click(finding(EFFUSION));
    expect([mapped(desk.choice.get()), pressed()]).toEqual(["effusion", "true"]);
    fireEvent.click(finding(EFFUSION));
    expect([mapped(desk.choice.get()), pressed()]).toEqual([null, "false"]);
    expect(desk.choice.get().concept).toBe("effusion");
    fireEvent.click(finding(EFFUSION));
    expect([mapped(desk.choice.get()), pressed()]).toEqual(["effusion", "true"]);
  });

  test("shows another finding's map even if the one before was hidden", () => {
    const { desk } = atWork();
    fireEvent.click(finding(EFFUSION));
    fireEvent.click(finding(EFFUSION));
    fireEvent.click(finding(CAVITY));
    expect(mapped(desk.choice.get())).toBe("cavity");
  });

  test("changes what a new box is said to show, but not what an applied one says", () => {
    const { desk } = atWork();
    const edit = { box: CAVITY_BOX, concept: "nodule", positive: true, number: null, moving: false };
    desk.edit.set(edit);
    fireEvent.click(finding(EFFUSION));
    expect(desk.edit.get()?.concept).toBe("effusion");
    desk.edit.set({ ...edit, number: 0 });
    fireEvent.click(finding(CAVITY));
    expect(desk.edit.get()?.concept).toBe("nodule");
  });

  test("rejecting says that it is not on this film; rejecting again takes that very correction back", () => {
    const reading = readingOf({ study: study({ corrections: [boxed(), rejected("nodule")] }) });
    const { asked } = atWork(sittingOf({ reading }));
    fireEvent.click(screen.getByRole("button", { name: "Reject Cavity: it is not on this film" }));
    fireEvent.click(screen.getByRole("button", { name: "Take the rejection of Nodule back" }));
    expect(asked).toEqual([
      { kind: "reject", concept: "cavity" },
      { kind: "withdraw", number: 1 },
    ]);
  });

  test.each([{ locked: true }, { busy: true }])(
    "nothing can be rejected while the study is not to be changed: %j",
    (state) => {
      const sitting = sittingOf(state);
      show(<Findings explanation={SEEN} />, sitting);
      const buttons = screen.getAllByRole<HTMLButtonElement>("button", {
        name: /^Reject |^Take the rejection/,
      });
      expect(buttons.map((button) => button.disabled)).toEqual([true, true, true]);
    },
  );
});
