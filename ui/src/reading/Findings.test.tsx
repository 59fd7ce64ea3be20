import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { conceptOnMap } from "../film/viewerState";
import {
  boxed,
  CAVITY_BOX,
  conceptSeen,
  contextOf,
  explanation,
  rejected,
  renderInContext,
  resetBrowser,
  study,
  studyDataOf,
} from "../test/fixtures";
import { Findings } from "./Findings";
import { ReadingContext, type ReadingContextValue } from "./ReadingContext";
import type { StepRequest } from "./studySteps";
import { useStudyActions } from "./useStudyActions";

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

/** The list with the real actions. */
function FindingsWithActions({
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
  test("keeps the model's order and states the certainty of each finding", () => {
    renderInContext(<Findings explanation={SEEN} />);
    const names = ["Pleural effusion clearly seen", "Cavity perhaps", "Nodule rejected"];
    const buttons = screen.getAllByRole("listitem").map((item) => item.querySelector("button"));
    expect(buttons).toEqual(names.map((name) => screen.getByRole("button", { name })));
  });

  test("says so if the model has no findings", () => {
    renderInContext(<Findings explanation={explanation([])} />);
    expect(screen.getByText("This model knows no findings.")).toBeTruthy();
  });

  test("strikes only rejected findings through", () => {
    renderInContext(<Findings explanation={SEEN} />);
    expect(screen.getByText("Nodule").classList.contains("struck")).toBe(true);
    expect(screen.getByText("Cavity").classList.contains("struck")).toBe(false);
  });
});

describe("hovering over a finding", () => {
  test("shows its map while the pointer is there", () => {
    const context = contextOf();
    renderInContext(<Findings explanation={SEEN} />, context);
    context.viewer.selection.set((current) => ({ ...current, concept: "effusion" }));
    fireEvent.pointerMove(finding(CAVITY), { pointerType: "mouse" });
    expect(conceptOnMap(context.viewer.selection.get())).toBe("cavity");
    fireEvent.pointerLeave(finding(CAVITY), { pointerType: "mouse" });
    expect(conceptOnMap(context.viewer.selection.get())).toBe("effusion");
  });

  test("needs a pointer movement: scrolling the list under the pointer changes nothing", () => {
    const context = contextOf();
    renderInContext(<Findings explanation={SEEN} />, context);
    fireEvent.pointerEnter(finding(CAVITY), { pointerType: "mouse" });
    expect(context.viewer.selection.get().hovered).toBeNull();
  });

  test("needs a mouse: touch changes nothing", () => {
    const context = contextOf();
    renderInContext(<Findings explanation={SEEN} />, context);
    fireEvent.pointerMove(finding(CAVITY), { pointerType: "touch" });
    expect(context.viewer.selection.get().hovered).toBeNull();
  });
});

describe("selecting a finding", () => {
  const renderFindings = (context = contextOf()) => {
    const requests: StepRequest[] = [];
    renderInContext(
      <FindingsWithActions context={context} onStep={(request) => requests.push(request)} />,
      context,
    );
    return { asked: requests, viewer: context.viewer };
  };

  test("keeps its map on the film; selecting it again hides and shows the map", () => {
    const { viewer } = renderFindings();
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
    const { viewer } = renderFindings();
    fireEvent.click(finding(EFFUSION));
    fireEvent.click(finding(EFFUSION));
    fireEvent.click(finding(CAVITY));
    expect(conceptOnMap(viewer.selection.get())).toBe("cavity");
  });

  test("changes the finding of a new box, but not of an applied one", () => {
    const { viewer } = renderFindings();
    const draft = {
      box: CAVITY_BOX,
      concept: "nodule",
      positive: true,
      correctionIndex: null,
      moving: false,
    };
    viewer.draft.set(draft);
    fireEvent.click(finding(EFFUSION));
    expect(viewer.draft.get()?.concept).toBe("effusion");
    viewer.draft.set({ ...draft, correctionIndex: 0 });
    fireEvent.click(finding(CAVITY));
    expect(viewer.draft.get()?.concept).toBe("nodule");
  });

  test("rejecting sends a rejection; rejecting again withdraws that correction", () => {
    const studyData = studyDataOf({ study: study({ corrections: [boxed(), rejected("nodule")] }) });
    const { asked: requests } = renderFindings(contextOf({ studyData }));
    fireEvent.click(screen.getByRole("button", { name: "Reject Cavity: it is not on this film" }));
    fireEvent.click(screen.getByRole("button", { name: "Undo the rejection of Nodule" }));
    expect(requests).toEqual([
      { kind: "reject", concept: "cavity" },
      { kind: "withdraw", correctionIndex: 1 },
    ]);
  });

  test.each([{ locked: true }, { saving: true }])(
    "rejecting is disabled while the study cannot be changed: %j",
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
