import { beforeEach, describe, expect, test } from "vitest";

import { PLAIN } from "../film/greys";
import { CAVITY_BOX, freshBrowser } from "../test/scene";
import { createDesk, mapped } from "./desk";

const EDIT = { box: CAVITY_BOX, concept: "cavity", positive: false, number: null, moving: false };

beforeEach(() => freshBrowser());

describe("after a reload", () => {
  test("the box, the greys and the chosen finding lie there as they were", () => {
    const desk = createDesk("f1");
    desk.edit.set(EDIT);
    desk.greys.set({ ...PLAIN, inverted: true });
    desk.choice.set((now) => ({ ...now, concept: "nodule", opacity: 0.3 }));
    const again = createDesk("f1");
    expect(again.edit.get()).toEqual(EDIT);
    expect(again.greys.get().inverted).toBe(true);
    expect(again.choice.get()).toMatchObject({ concept: "nodule", opacity: 0.3 });
  });

  test("a box that was being drawn is at rest, so that it can be applied", () => {
    createDesk("f1").edit.set({ ...EDIT, moving: true });
    expect(createDesk("f1").edit.get()).toEqual(EDIT);
  });

  test("nothing of it lies on another film", () => {
    createDesk("f1").edit.set(EDIT);
    expect(createDesk("f2").edit.get()).toBeNull();
  });
});

test("the map on the film is that of the finding pointed at, else of the chosen one, unless hidden", () => {
  const choice = { concept: "cavity", pinned: true, hovered: null, kind: "mean", opacity: 1 } as const;
  expect(mapped(choice)).toBe("cavity");
  expect(mapped({ ...choice, hovered: "nodule" })).toBe("nodule");
  expect(mapped({ ...choice, pinned: false })).toBeNull();
  expect(mapped({ ...choice, pinned: false, hovered: "nodule" })).toBe("nodule");
});
