import { beforeEach, describe, expect, test } from "vitest";

import { CAVITY_BOX, resetBrowser } from "../test/fixtures";
import { conceptOnMap, createViewerState } from "./viewerState";
import { FULL_RANGE } from "./windowLevel";

const DRAFT = { box: CAVITY_BOX, concept: "cavity", positive: false, correctionIndex: null, moving: false };

beforeEach(() => resetBrowser());

describe("after a reload", () => {
  test("the box, the window and the selected finding are restored", () => {
    const viewer = createViewerState("f1");
    viewer.draft.set(DRAFT);
    viewer.windowLevel.set({ ...FULL_RANGE, inverted: true });
    viewer.selection.set((current) => ({ ...current, concept: "nodule", opacity: 0.3 }));
    const again = createViewerState("f1");
    expect(again.draft.get()).toEqual(DRAFT);
    expect(again.windowLevel.get().inverted).toBe(true);
    expect(again.selection.get()).toMatchObject({ concept: "nodule", opacity: 0.3 });
  });

  test("a box that was being drawn can be applied", () => {
    createViewerState("f1").draft.set({ ...DRAFT, moving: true });
    expect(createViewerState("f1").draft.get()).toEqual(DRAFT);
  });

  test("nothing is restored on another film", () => {
    createViewerState("f1").draft.set(DRAFT);
    expect(createViewerState("f2").draft.get()).toBeNull();
  });
});

test("the map is that of the hovered finding, else of the selected one unless it is hidden", () => {
  const choice = { concept: "cavity", pinned: true, hovered: null, kind: "mean", opacity: 1 } as const;
  expect(conceptOnMap(choice)).toBe("cavity");
  expect(conceptOnMap({ ...choice, hovered: "nodule" })).toBe("nodule");
  expect(conceptOnMap({ ...choice, pinned: false })).toBeNull();
  expect(conceptOnMap({ ...choice, pinned: false, hovered: "nodule" })).toBe("nodule");
});
