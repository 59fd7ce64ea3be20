/** What training wrote down. It is plain data whose keys may be others in another version, so nothing is relied on. */
type Plain = Record<string, unknown>;

export interface StageFigure {
  stage: string;
  figure: string;
  score: number;
  best: number;
  epochs: number;
}

export function textAt(told: Plain, name: string): string | null {
  const found = told[name];
  return typeof found === "string" && found !== "" ? found : null;
}

export function numberAt(told: Plain, name: string): number | null {
  const found = told[name];
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}

/** How good each stage of training was on validation films when it was best. */
export function stagesOf(metrics: Plain): StageFigure[] {
  return Object.entries(record(metrics.validation)).flatMap(([stage, told]) => {
    const found = record(told);
    const score = numberAt(found, "score");
    if (score === null) return [];
    return [
      {
        stage,
        figure: textAt(found, "figure") ?? "",
        score,
        best: numberAt(found, "best_epoch") ?? 0,
        epochs: numberAt(found, "epochs") ?? 0,
      },
    ];
  });
}

function record(told: unknown): Plain {
  return typeof told === "object" && told !== null && !Array.isArray(told) ? (told as Plain) : {};
}
