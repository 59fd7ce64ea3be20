import { beforeEach, describe, expect, test } from "vitest";

import { FULL_RANGE } from "./windowLevel";
import { CAVITY_BOX, resetBrowser } from "../test/fixtures";
import { createViewerState, conceptOnMap } from "./viewerState";

const DRAFT = { box: CAVITY_BOX, concept: "cavity", positive: false, correctionIndex: null, moving: false };

beforeEach(() => resetBrowser());

describe("after a reload", () => {
  test("the box, the greys and the chosen finding lie there as they were", () => {
    const viewer = createViewerState("f1");
    viewer.draft.set(DRAFT);
    viewer.windowLevel.set({ ...FULL_RANGE, inverted: true });
    viewer.selection.set((current) => ({ ...current, concept: "nodule", opacity: 0.3 }));
    const again = createViewerState("f1");
    expect(again.draft.get()).toEqual(DRAFT);
    expect(again.windowLevel.get().inverted).toBe(true);
    expect(again.selection.get()).toMatchObject({ concept: "nodule", opacity: 0.3 });
  });

  test("a box that was being drawn is at rest, so that it can be applied", () => {
    createViewerState("f1").draft.set({ ...DRAFT, moving: true });
    expect(createViewerState("f1").draft.get()).toEqual(DRAFT);
  });

  test("nothing of it lies on another film", () => {
    createViewerState("f1").draft.set(DRAFT);
    expect(createViewerState("f2").draft.get()).toBeNull();
  });
});

test("the map on the film is that of the finding pointed at, else of the chosen one, unless hidden", () => {
  const choice = { concept: "cavity", pinned: true, hovered: null, kind: "mean", opacity: 1 } as const;
  expect(conceptOnMap(choice)).toBe("cavity");
  expect(conceptOnMap({ ...choice, hovered: "nodule" })).toBe("nodule");
  expect(conceptOnMap({ ...choice, pinned: false })).toBeNull();
  expect(conceptOnMap({ ...choice, pinned: false, hovered: "nodule" })).toBe("nodule");
});
