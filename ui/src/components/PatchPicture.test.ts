import { describe, expect, test } from "vitest";

import { forManyCases } from "../test/randomCases";
import { cropAroundPatch } from "./PatchPicture";

describe("what is shown around a patch", () => {
  test("is twice as large as the patch, with the patch in the middle", () => {
    expect(cropAroundPatch({ x1: 100, y1: 120, x2: 140, y2: 160 }, 512)).toEqual({ x: 40, y: 60, size: 160 });
  });

  test("is square for a patch that is not, by its longer side", () => {
    expect(cropAroundPatch({ x1: 100, y1: 120, x2: 140, y2: 130 }, 512)).toEqual({ x: 40, y: 45, size: 160 });
  });

  test("stays inside the picture for a patch in its corner", () => {
    expect(cropAroundPatch({ x1: 0, y1: 472, x2: 40, y2: 512 }, 512)).toEqual({ x: 0, y: 352, size: 160 });
  });

  test("is the whole picture for a patch of more than half of it", () => {
    expect(cropAroundPatch({ x1: 100, y1: 100, x2: 400, y2: 400 }, 512)).toEqual({ x: 0, y: 0, size: 512 });
  });

  test("always shows all of the patch and nothing beside the picture", () => {
    forManyCases((random) => {
      const [x1, y1] = [random.between(0, 500), random.between(0, 500)];
      const patch = { x1, y1, x2: random.between(x1, 512), y2: random.between(y1, 512) };
      const { x, y, size } = cropAroundPatch(patch, 512);
      const shown =
        x <= patch.x1 && y <= patch.y1 && patch.x2 <= x + size + 1e-9 && patch.y2 <= y + size + 1e-9;
      const within = x >= 0 && y >= 0 && x + size <= 512 + 1e-9 && y + size <= 512 + 1e-9;
      expect({ patch, shown, within }).toEqual({ patch, shown: true, within: true });
    });
  });
});
