import { describe, expect, test } from "vitest";

import { WORDS } from "../i18n/words";
import { CAVITY_BOX, FILM } from "../test/fixtures";
import { boxSizeText } from "./BoxCard";

const METRIC = {
  language: "en",
  theme: "dark",
  lengths: "millimetres",
  shares: "percent",
  keys: true,
} as const;
const words = WORDS.en.reading;
// 200 pixels across, each 0.1 mm wide; 150 pixels down, each 0.2 mm high.
const BOX = CAVITY_BOX;

describe("how large a box is", () => {
  test("is shown in millimetres, from the film's own pixel spacing", () => {
    expect(boxSizeText(BOX, FILM, METRIC, words)).toBe("20 × 30 mm");
  });

  test("is shown in pixels if set so", () => {
    expect(boxSizeText(BOX, FILM, { ...METRIC, lengths: "pixels" }, words)).toBe("200 × 150 pixels");
  });

  test("is shown in pixels if the spacing is unknown", () => {
    const unknown = { ...FILM, facts: { ...FILM.facts, spacing: null } };
    expect(boxSizeText(BOX, unknown, METRIC, words)).toBe("200 × 150 pixels");
    expect(boxSizeText(BOX, undefined, METRIC, words)).toBe("200 × 150 pixels");
  });

  test("is shown in the page's language", () => {
    const wide = { ...BOX, x2: 2400 };
    const german = { ...METRIC, language: "de", lengths: "pixels" } as const;
    expect(boxSizeText(wide, FILM, german, WORDS.de.reading)).toBe("2.000 × 150 Pixel");
  });
});
