import { describe, expect, test } from "vitest";

import { canLearn, isGathering, NOTHING, shortName } from "./lesson";

describe("the name that programs use", () => {
  const named: [string, string][] = [
    ["Cavity", "cavity"],
    ["Thick-walled cavity", "thick_walled_cavity"],
    ["  Miliary   nodules!  ", "miliary_nodules"],
    ["Pleuraerguß", "pleuraerguss"],
    ["Höhle im Oberlappen", "hohle_im_oberlappen"],
    ["Épanchement", "epanchement"],
    ["2nd rib fracture", "nd_rib_fracture"],
    ["_hidden_", "hidden"],
    ["T2 lesion", "t2_lesion"],
  ];
  test.each(named)("of “%s” is %s", (title, name) => {
    expect(shortName(title)).toBe(name);
  });

  test("is empty where no letter is left of the title", () => {
    expect(["", "   ", "123", "!?", "空洞"].map(shortName)).toEqual(["", "", "", "", ""]);
  });

  test("is one that the server takes, however long the title is", () => {
    const taken = /^[a-z][a-z0-9_]{0,62}$/;
    for (const [title] of named) expect(shortName(title.repeat(12))).toMatch(taken);
  });
});

describe("a lesson", () => {
  const described = { ...NOTHING, open: true, title: "Cavity", description: "Thick-walled lucency." };

  test("can be learnt once it has a name and a sentence; examples are welcome, not needed", () => {
    expect(canLearn(described)).toBe(true);
    expect(canLearn({ ...described, title: " 12 " })).toBe(false);
    expect(canLearn({ ...described, description: "   " })).toBe(false);
  });

  test("takes boxes as examples while it is open and nothing is being learnt", () => {
    expect(isGathering(described)).toBe(true);
    expect(isGathering(NOTHING)).toBe(false);
    expect(isGathering({ ...described, job: "j1" })).toBe(false);
    expect(isGathering({ ...described, learnt: { model: "m2", concept: "cavity" } })).toBe(false);
  });
});
