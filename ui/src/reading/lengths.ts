/** How large a box is, in the unit that somebody likes and the film knows. */
import type { Film } from "../api/types";
import type { Box } from "../film/box";
import { figure } from "../parts/format";
import type { Settings } from "../settings/settings";
import type { Words } from "../words/words";

export function lengths(box: Box, film: Film | undefined, liking: Settings, words: Words["reading"]): string {
  const spacing = film?.facts.spacing;
  const [across, down] = [box.x2 - box.x1, box.y2 - box.y1];
  const [rows, columns] = spacing ?? [1, 1];
  const metric = liking.lengths === "millimetres" && spacing;
  const told = (value: number) => figure(value, liking.language, 0);
  return metric
    ? words.size(told(across * columns), told(down * rows), words.millimetres)
    : words.size(told(across), told(down), words.pixels);
}
