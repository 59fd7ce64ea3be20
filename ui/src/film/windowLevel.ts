/** Window and level, as fractions of the film's full grey range. */
import { clamp } from "./panZoom";

export interface WindowLevel {
  centre: number;
  width: number;
  inverted: boolean;
}

export const FULL_RANGE: WindowLevel = { centre: 0.5, width: 1, inverted: false };
const NARROWEST = 0.02;
const WIDEST = 2;

/**
 * Change by a drag, given as fractions of the viewport: right widens the window, down brightens, as on PACS
 * workstations.
 */
export function dragWindowLevel(windowLevel: WindowLevel, right: number, down: number): WindowLevel {
  return {
    ...windowLevel,
    width: clamp(windowLevel.width * Math.exp(2 * right), NARROWEST, WIDEST),
    centre: clamp(windowLevel.centre - down, 0, 1),
  };
}

export function isSameWindow(a: WindowLevel, b: WindowLevel): boolean {
  return a.centre === b.centre && a.width === b.width && a.inverted === b.inverted;
}

/** Lookup table from stored to shown grey values. */
export function lookupTable(windowLevel: WindowLevel): Uint8ClampedArray {
  const low = windowLevel.centre - windowLevel.width / 2;
  return Uint8ClampedArray.from({ length: 256 }, (_, grey) => {
    const share = clamp((grey / 255 - low) / windowLevel.width, 0, 1);
    return Math.round(255 * (windowLevel.inverted ? 1 - share : share));
  });
}

/** Address of the film picture that the server renders with this window from all bits of the film. */
export function pictureAddress(film: string, windowLevel: WindowLevel, side: number): string {
  const params = new URLSearchParams({ side: String(side) });
  if (!isSameWindow(windowLevel, FULL_RANGE)) {
    params.set("centre", windowLevel.centre.toFixed(4));
    params.set("width", windowLevel.width.toFixed(4));
    if (windowLevel.inverted) params.set("inverted", "true");
  }
  return `/api/v1/films/${film}/picture.png?${params.toString()}`;
}
