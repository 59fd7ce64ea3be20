/** Readers for the metrics that training saved. Their keys differ between versions, so every value is checked. */
type Json = Record<string, unknown>;

export interface StageScore {
  stage: string;
  figure: string;
  score: number;
  best: number;
  epochs: number;
}

export function textAt(metrics: Json, name: string): string | null {
  const value = metrics[name];
  return typeof value === "string" && value !== "" ? value : null;
}

export function numberAt(metrics: Json, name: string): number | null {
  const value = metrics[name];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** The best validation score of each training stage. */
export function stageScores(metrics: Json): StageScore[] {
  return Object.entries(record(metrics.validation)).flatMap(([stage, value]) => {
    const metricsOfStage = record(value);
    const score = numberAt(metricsOfStage, "score");
    if (score === null) return [];
    return [
      {
        stage,
        figure: textAt(metricsOfStage, "figure") ?? "",
        score,
        best: numberAt(metricsOfStage, "best_epoch") ?? 0,
        epochs: numberAt(metricsOfStage, "epochs") ?? 0,
      },
    ];
  });
}

function record(value: unknown): Json {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}
