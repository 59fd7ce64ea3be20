import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import {
  boxed,
  CAVITY_BOX,
  explanation,
  resetBrowser,
  studyDataOf,
  rejected,
  conceptSeen,
  renderInContext,
  contextOf,
  study,
} from "../test/fixtures";
import type { StepRequest } from "./studySteps";
import { conceptOnMap } from "../film/viewerState";
import { Findings } from "./Findings";
import { useStudyActions } from "./useStudyActions";
import { type ReadingContextValue, ReadingContext } from "./ReadingContext";

beforeEach(() => resetBrowser());
afterEach(() => cleanup());

const SEEN = explanation([
  conceptSeen("effusion", "Pleural effusion"),
  conceptSeen("cavity", "Cavity", { words: "perhaps", strength: 0.4 }),
  conceptSeen("nodule", "Nodule", { words: "rejected", rejected: true, strength: null }),
]);
const finding = (name: RegExp) => screen.getByRole("button", { name });
const EFFUSION = /^Pleural effusion /;
const CAVITY = /^Cavity /;

/** The list with hands that do what they are told. */
function AtWork({
  context,
  onStep,
}: {
  context: ReadingContextValue;
  onStep: (request: StepRequest) => void;
}) {
  const actions = useStudyActions({ ...context, takeStep: onStep });
  return (
    <ReadingContext value={{ ...context, actions }}>
      <Findings explanation={SEEN} />
    </ReadingContext>
  );
}

describe("the list of findings", () => {
  test("keeps the model's order, and says in words how clearly each is seen", () => {
    renderInContext(<Findings explanation={SEEN} />);
    const names = ["Pleural effusion clearly seen", "Cavity perhaps", "Nodule rejected"];
    const buttons = screen.getAllByRole("listitem").map((item) => item.querySelector("button"));
    expect(buttons).toEqual(names.map((name) => screen.getByRole("button", { name })));
  });

  test("says so where the model knows no findings", () => {
    renderInContext(<Findings explanation={explanation([])} />);
    expect(screen.getByText("This model knows no findings.")).toBeTruthy();
  });

  test("strikes a rejected finding through, and no other", () => {
    renderInContext(<Findings explanation={SEEN} />);
    expect(screen.getByText("Nodule").classList.contains("struck")).toBe(true);
    expect(screen.getByText("Cavity").classList.contains("struck")).toBe(false);
  });
});

describe("pointing at a finding", () => {
  test("lays its map on the film for as long as the pointer rests there", () => {
    const context = contextOf();
    renderInContext(<Findings explanation={SEEN} />, context);
    context.viewer.selection.set((current) => ({ ...current, concept: "effusion" }));
    fireEvent.pointerMove(finding(CAVITY), { pointerType: "mouse" });
    expect(conceptOnMap(context.viewer.selection.get())).toBe("cavity");
    fireEvent.pointerLeave(finding(CAVITY), { pointerType: "mouse" });
    expect(conceptOnMap(context.viewer.selection.get())).toBe("effusion");
  });

  test("takes a hand that moves: a list that slides under the pointer was not pointed at", () => {
    const context = contextOf();
    renderInContext(<Findings explanation={SEEN} />, context);
    fireEvent.pointerEnter(finding(CAVITY), { pointerType: "mouse" });
    expect(context.viewer.selection.get().hovered).toBeNull();
  });

  test("takes a mouse: a finger on the glass points at nothing", () => {
    const context = contextOf();
    renderInContext(<Findings explanation={SEEN} />, context);
    fireEvent.pointerMove(finding(CAVITY), { pointerType: "touch" });
    expect(context.viewer.selection.get().hovered).toBeNull();
  });
});

describe("choosing a finding", () => {
  const atWork = (context = contextOf()) => {
    const requests: StepRequest[] = [];
    renderInContext(<AtWork context={context} onStep={(request) => requests.push(request)} />, context);
    return { asked: requests, viewer: context.viewer };
  };

  test("keeps its map on the film; choosing it again hides the map, and once more shows it", () => {
    const { viewer } = atWork();
    const pressed = () => finding(EFFUSION).getAttribute("aria-pressed");
    fireEvent.click(finding(EFFUSION));
    expect([conceptOnMap(viewer.selection.get()), pressed()]).toEqual(["effusion", "true"]);
    fireEvent.click(finding(EFFUSION));
    expect([conceptOnMap(viewer.selection.get()), pressed()]).toEqual([null, "false"]);
    expect(viewer.selection.get().concept).toBe("effusion");
    fireEvent.click(finding(EFFUSION));
    expect([conceptOnMap(viewer.selection.get()), pressed()]).toEqual(["effusion", "true"]);
  });

  test("shows another finding's map even if the one before was hidden", () => {
    const { viewer } = atWork();
    fireEvent.click(finding(EFFUSION));
    fireEvent.click(finding(EFFUSION));
    fireEvent.click(finding(CAVITY));
    expect(conceptOnMap(viewer.selection.get())).toBe("cavity");
  });

  test("changes what a new box is said to show, but not what an applied one says", () => {
    const { viewer } = atWork();
    const edit = { box: CAVITY_BOX, concept: "nodule", positive: true, correctionIndex: null, moving: false };
    viewer.draft.set(edit);
    fireEvent.click(finding(EFFUSION));
    expect(viewer.draft.get()?.concept).toBe("effusion");
    viewer.draft.set({ ...edit, correctionIndex: 0 });
    fireEvent.click(finding(CAVITY));
    expect(viewer.draft.get()?.concept).toBe("nodule");
  });

  test("rejecting says that it is not on this film; rejecting again takes that very correction back", () => {
    const studyData = studyDataOf({ study: study({ corrections: [boxed(), rejected("nodule")] }) });
    const { asked: requests } = atWork(contextOf({ studyData }));
    fireEvent.click(screen.getByRole("button", { name: "Reject Cavity: it is not on this film" }));
    fireEvent.click(screen.getByRole("button", { name: "Undo the rejection of Nodule" }));
    expect(requests).toEqual([
      { kind: "reject", concept: "cavity" },
      { kind: "withdraw", correctionIndex: 1 },
    ]);
  });

  test.each([{ locked: true }, { saving: true }])(
    "nothing can be rejected while the study is not to be changed: %j",
    (state) => {
      const context = contextOf(state);
      renderInContext(<Findings explanation={SEEN} />, context);
      const buttons = screen.getAllByRole<HTMLButtonElement>("button", {
        name: /^Reject |^Undo the rejection/,
      });
      expect(buttons.map((button) => button.disabled)).toEqual([true, true, true]);
    },
  );
});
