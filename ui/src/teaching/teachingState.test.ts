import { describe, expect, test } from "vitest";

import { canTeach, conceptName, isCollectingExamples, NOT_TEACHING } from "./teachingState";

describe("the identifier of a finding", () => {
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

  test("is empty if the title has no Latin letters", () => {
    expect(["", "   ", "123", "!?", "空洞"].map(conceptName)).toEqual(["", "", "", "", ""]);
  });

  test("is valid on the server, however long the title is", () => {
    const taken = /^[a-z][a-z0-9_]{0,62}$/;
    for (const [title] of named) expect(conceptName(title.repeat(12))).toMatch(taken);
  });
});

describe("teaching", () => {
  const described = { ...NOT_TEACHING, open: true, title: "Cavity", description: "Thick-walled lucency." };

  test("needs a name and a sentence, but no examples", () => {
    expect(canTeach(described)).toBe(true);
    expect(canTeach({ ...described, title: " 12 " })).toBe(false);
    expect(canTeach({ ...described, description: "   " })).toBe(false);
  });

  test("collects boxes as examples while the panel is open and no job runs", () => {
    expect(isCollectingExamples(described)).toBe(true);
    expect(isCollectingExamples(NOT_TEACHING)).toBe(false);
    expect(isCollectingExamples({ ...described, job: "j1" })).toBe(false);
    expect(isCollectingExamples({ ...described, learnt: { model: "m2", concept: "cavity" } })).toBe(false);
  });
});
