import { describe, expect, test } from "vitest";

import { formatNumber, formatDate, displayName, formatProbability, formatChange } from "./format";

const PERCENT = { language: "en", shares: "percent" } as const;
const DECIMALS = { language: "en", shares: "decimals" } as const;
const GERMAN = { language: "de", shares: "percent" } as const;
const GERMAN_DECIMALS = { language: "de", shares: "decimals" } as const;
/** Languages put spaces of their own before a percent sign. */
const plain = (text: string) => text.replace(/\s/g, " ");

describe("a probability", () => {
  test("is told in per cent or as a decimal, as somebody likes", () => {
    expect(formatProbability(0.874, PERCENT)).toBe("87%");
    expect(formatProbability(0.874, DECIMALS)).toBe("0.87");
    expect(plain(formatProbability(0.874, GERMAN))).toBe("87 %");
    expect(formatProbability(0.874, GERMAN_DECIMALS)).toBe("0,87");
  });

  test("below one per cent is not rounded away", () => {
    expect(formatProbability(0.004, PERCENT)).toBe("0.4%");
    expect(formatProbability(0, PERCENT)).toBe("0%");
    expect(formatProbability(1, PERCENT)).toBe("100%");
  });
});

describe("a difference of probabilities", () => {
  test("carries its sign, and a true minus", () => {
    expect(formatChange(0.12, PERCENT)).toBe("+12");
    expect(formatChange(-0.12, PERCENT)).toBe("−12");
    expect(formatChange(-0.123, DECIMALS)).toBe("−0.12");
    expect(formatChange(0.123, GERMAN_DECIMALS)).toBe("+0,12");
  });

  test("that rounds to nothing has no sign", () => {
    expect(formatChange(0.001, PERCENT)).toBe("0");
    expect(formatChange(-0.001, PERCENT)).toBe("0");
  });
});

describe("a figure", () => {
  test("has two digits unless told otherwise, and the language's own point", () => {
    expect(formatNumber(0.5, "en")).toBe("0.50");
    expect(formatNumber(0.5, "de")).toBe("0,50");
    expect(formatNumber(1234.56, "en", 0)).toBe("1,235");
    expect(formatNumber(0.0417, "en", 3)).toBe("0.042");
  });

  test("has a true minus, and none before a nought", () => {
    expect(formatNumber(-0.25, "en")).toBe("−0.25");
    expect(formatNumber(-0.001, "en")).toBe("0.00");
  });
});

test("a moment is told with day and time in the language's own order", () => {
  // Noon in Greenwich is the same day everywhere but on a few islands.
  expect(formatDate("2026-03-09T12:00:00Z", "en")).toMatch(/^Mar 9, 2026, \d{1,2}:\d\d\s[AP]M$/);
  expect(formatDate("2026-03-09T12:00:00Z", "de")).toMatch(/^09\.03\.2026, \d\d:\d\d$/);
});

test("names for programs are told as names for people", () => {
  expect(displayName("sick_non_tb")).toBe("Sick non TB");
  expect(displayName("active_tb")).toBe("Active TB");
  expect(displayName("healthy")).toBe("Healthy");
  expect(displayName("football")).toBe("Football");
});
