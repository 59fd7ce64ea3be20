/** Which greys of a film are shown: window and level, as shares of all its greys. */
import { clamp } from "./view";

export interface Greys {
  centre: number;
  width: number;
  inverted: boolean;
}

export const PLAIN: Greys = { centre: 0.5, width: 1, inverted: false };
const NARROWEST = 0.02;
const WIDEST = 2;

/** After a drag by so many shares of the room: to the right is wider, down is brighter, as on a workstation. */
export function draggedGreys(greys: Greys, right: number, down: number): Greys {
  return {
    ...greys,
    width: clamp(greys.width * Math.exp(2 * right), NARROWEST, WIDEST),
    centre: clamp(greys.centre - down, 0, 1),
  };
}

export function sameGreys(one: Greys, other: Greys): boolean {
  return one.centre === other.centre && one.width === other.width && one.inverted === other.inverted;
}

/** What each of 256 greys becomes. */
export function table(greys: Greys): Uint8ClampedArray {
  const low = greys.centre - greys.width / 2;
  return Uint8ClampedArray.from({ length: 256 }, (_, grey) => {
    const share = clamp((grey / 255 - low) / greys.width, 0, 1);
    return Math.round(255 * (greys.inverted ? 1 - share : share));
  });
}

/** Where the server draws the film with these greys from all its bits. */
export function address(film: string, greys: Greys, side: number): string {
  const asked = new URLSearchParams({ side: String(side) });
  if (!sameGreys(greys, PLAIN)) {
    asked.set("centre", greys.centre.toFixed(4));
    asked.set("width", greys.width.toFixed(4));
    if (greys.inverted) asked.set("inverted", "true");
  }
  return `/api/v1/films/${film}/picture.png?${asked.toString()}`;
}
