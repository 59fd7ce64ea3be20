import { expect, test } from "vitest";

import { stageScores } from "./trainingMetrics";

test("each stage is listed with the score it was chosen by", () => {
  const head = { best_epoch: 5, epochs: 40, figure: "macro-F1", score: 0.79, loss: 0.5 };
  expect(stageScores({ validation: { head } })).toEqual([
    { stage: "head", figure: "macro-F1", score: 0.79, best: 5, epochs: 40 },
  ]);
});

test("metrics of another shape are skipped", () => {
  expect(stageScores({})).toEqual([]);
  expect(stageScores({ validation: { head: "nan", odd: { score: "nan" } } })).toEqual([]);
});
