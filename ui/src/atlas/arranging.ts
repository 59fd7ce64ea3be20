/** Which prototypes are shown, and in which order. */
import type { Prototype } from "../api/types";
import type { Patch } from "../parts/PatchPicture";
import type { Worth } from "../model/queries";

export type Order = "number" | "similarity" | "usage" | "gain";
export type Shown = "all" | "kept" | "discarded";
export type Use = Worth["concepts"][number]["prototypes"][number];

export interface Usage {
  /** Training films that show the finding. */
  shown: number;
  of: (number: number) => Use | undefined;
}

/** What the prototypes of a finding do; null where nobody measured the model, or the data does not know the finding. */
export function usageOf(worth: Worth | null | undefined, concept: string): Usage | null {
  const found = worth?.concepts.find((one) => one.name === concept);
  if (!found || found.shown === 0) return null;
  const uses = new Map(found.prototypes.map((use) => [use.number, use]));
  return { shown: found.shown, of: (number) => uses.get(number) };
}

export function arranged(
  all: readonly Prototype[],
  order: Order,
  shown: Shown,
  usage: Usage | null,
): Prototype[] {
  const weight = (one: Prototype): number => {
    if (order === "similarity") return one.similarity ?? -1;
    if (order === "gain") return one.gain ?? -1;
    return order === "usage" ? (usage?.of(one.number)?.strongest ?? -1) : 0;
  };
  return all
    .filter((one) => shown === "all" || one.kept === (shown === "kept"))
    .sort((one, other) => weight(other) - weight(one) || one.number - other.number);
}

/** Units in which pictures are drawn; training films are kept as squares. */
export const SIDE = 1000;

export function patchOf({ patch, grid }: Prototype): Patch | null {
  if (patch === null) return null;
  const [height, width] = [SIDE / grid[0], SIDE / grid[1]];
  const [row, column] = patch;
  return { x1: column * width, y1: row * height, x2: (column + 1) * width, y2: (row + 1) * height };
}
