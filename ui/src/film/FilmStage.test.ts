import { describe, expect, test } from "vitest";

import { paletteColour } from "../reading/conceptDisplay";
import { labelTextColour } from "./FilmStage";

/** Contrast of two colours, as defined by WCAG 2. */
function contrast(one: string, other: string): number {
  const [dark, bright] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (bright + 0.05) / (dark + 0.05);
}

function luminance(colour: string): number {
  const digits = colour.length === 4 ? colour.slice(1).replace(/./g, "$&$&") : colour.slice(1);
  const [red, green, blue] = [0, 2, 4].map((at) => {
    const share = parseInt(digits.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

describe("text on a label", () => {
  test("is black on white and yellow, white on black and blue", () => {
    expect(["#FFFFFF", "#F0E442", "#000000", "#0072B2"].map(labelTextColour)).toEqual([
      "#000",
      "#000",
      "#fff",
      "#fff",
    ]);
  });

  test("has enough contrast on the colour of every finding", () => {
    for (let position = 0; position < 7; position++) {
      const colour = paletteColour(position);
      expect(contrast(colour, labelTextColour(colour)), colour).toBeGreaterThanOrEqual(4.5);
    }
  });
});
