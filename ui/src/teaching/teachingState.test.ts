import { describe, expect, test } from "vitest";

import { canTeach, isCollectingExamples, NOT_TEACHING, conceptName } from "./teachingState";

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
    expect(conceptName(title)).toBe(name);
  });

  test("is empty where no letter is left of the title", () => {
    expect(["", "   ", "123", "!?", "空洞"].map(conceptName)).toEqual(["", "", "", "", ""]);
  });

  test("is one that the server takes, however long the title is", () => {
    const taken = /^[a-z][a-z0-9_]{0,62}$/;
    for (const [title] of named) expect(conceptName(title.repeat(12))).toMatch(taken);
  });
});

describe("a lesson", () => {
  const described = { ...NOT_TEACHING, open: true, title: "Cavity", description: "Thick-walled lucency." };

  test("can be learnt once it has a name and a sentence; examples are welcome, not needed", () => {
    expect(canTeach(described)).toBe(true);
    expect(canTeach({ ...described, title: " 12 " })).toBe(false);
    expect(canTeach({ ...described, description: "   " })).toBe(false);
  });

  test("takes boxes as examples while it is open and nothing is being learnt", () => {
    expect(isCollectingExamples(described)).toBe(true);
    expect(isCollectingExamples(NOT_TEACHING)).toBe(false);
    expect(isCollectingExamples({ ...described, job: "j1" })).toBe(false);
    expect(isCollectingExamples({ ...described, learnt: { model: "m2", concept: "cavity" } })).toBe(false);
  });
});
