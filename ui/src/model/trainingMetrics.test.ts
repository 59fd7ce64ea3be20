import { expect, test } from "vitest";

import { stageScores } from "./trainingMetrics";

test("each stage is told with the figure it was chosen by", () => {
  const head = { best_epoch: 5, epochs: 40, figure: "macro-F1", score: 0.79, loss: 0.5 };
  expect(stageScores({ validation: { head } })).toEqual([
    { stage: "head", figure: "macro-F1", score: 0.79, best: 5, epochs: 40 },
  ]);
});

test("figures of another shape are left to the raw listing", () => {
  expect(stageScores({})).toEqual([]);
  expect(stageScores({ validation: { head: "nan", odd: { score: "nan" } } })).toEqual([]);
});
