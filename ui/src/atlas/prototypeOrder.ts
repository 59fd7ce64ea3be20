/** Sorting and filtering of prototypes. */
import type { Measurement, Prototype } from "../api/types";
import type { Patch } from "../components/PatchPicture";

export type Order = "number" | "similarity" | "usage" | "gain";
export type Filter = "all" | "kept" | "discarded";
export type PrototypeUsage = Measurement["concepts"][number]["prototypes"][number];

export interface UsageCounts {
  /** Number of training films that show the finding. */
  shown: number;
  of: (number: number) => PrototypeUsage | undefined;
}

/** Usage counts of a finding's prototypes; null if the model was not measured or no training film shows the finding. */
export function usageOf(measurement: Measurement | null | undefined, concept: string): UsageCounts | null {
  const usedFinding = measurement?.concepts.find((finding) => finding.name === concept);
  if (!usedFinding || usedFinding.shown === 0) return null;
  const uses = new Map(usedFinding.prototypes.map((use) => [use.number, use]));
  return { shown: usedFinding.shown, of: (number) => uses.get(number) };
}

export function filterAndSort(
  all: readonly Prototype[],
  order: Order,
  filter: Filter,
  usage: UsageCounts | null,
): Prototype[] {
  const weight = (prototype: Prototype): number => {
    if (order === "similarity") return prototype.similarity ?? -1;
    if (order === "gain") return prototype.gain ?? -1;
    return order === "usage" ? (usage?.of(prototype.number)?.strongest ?? -1) : 0;
  };
  return all
    .filter((prototype) => filter === "all" || prototype.kept === (filter === "kept"))
    .sort((a, b) => weight(b) - weight(a) || a.number - b.number);
}

/** Side of a drawn picture. Training films are stored as squares. */
export const PICTURE_SIDE = 1000;

export function patchBox({ patch, grid }: Prototype): Patch | null {
  if (patch === null) return null;
  const [height, width] = [PICTURE_SIDE / grid[0], PICTURE_SIDE / grid[1]];
  const [row, column] = patch;
  return { x1: column * width, y1: row * height, x2: (column + 1) * width, y2: (row + 1) * height };
}
