import { describe, expect, test } from "vitest";

import { parseSuggestion } from "./SuggestionCard";

describe("a suggestion in the page's address", () => {
  test("is a finding and the four corners of a box", () => {
    expect(parseSuggestion("active_tb", "53,82,76.5,107")).toEqual({
      concept: "active_tb",
      box: { x1: 53, y1: 82, x2: 76.5, y2: 107 },
    });
  });

  test("is null without a finding or corners", () => {
    expect(parseSuggestion(undefined, "53,82,76,107")).toBeNull();
    expect(parseSuggestion("", "53,82,76,107")).toBeNull();
    expect(parseSuggestion("active_tb", undefined)).toBeNull();
    expect(parseSuggestion("active_tb", "")).toBeNull();
  });

  test.each(["53,82,76", "53,82,76,107,1", "53,82,76,", ",,76,107", "a,b,c,d", "53,82,Infinity,107"])(
    "is null unless there are four numbers: %s",
    (corners) => {
      expect(parseSuggestion("active_tb", corners)).toBeNull();
    },
  );

  test("is null if the box is empty or reversed", () => {
    expect(parseSuggestion("active_tb", "76,82,53,107")).toBeNull();
    expect(parseSuggestion("active_tb", "53,107,76,82")).toBeNull();
    expect(parseSuggestion("active_tb", "53,82,53,107")).toBeNull();
  });
});
