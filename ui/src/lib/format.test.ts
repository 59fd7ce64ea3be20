import { describe, expect, test } from "vitest";

import { displayName, formatChange, formatDate, formatNumber, formatProbability } from "./format";

const PERCENT = { language: "en", shares: "percent" } as const;
const DECIMALS = { language: "en", shares: "decimals" } as const;
const GERMAN = { language: "de", shares: "percent" } as const;
const GERMAN_DECIMALS = { language: "de", shares: "decimals" } as const;
/** Some languages put a special space before the percent sign. */
const plain = (text: string) => text.replace(/\s/g, " ");

describe("a probability", () => {
  test("is shown in percent or as a decimal, as set", () => {
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

  test("that rounds to zero has no sign", () => {
    expect(formatChange(0.001, PERCENT)).toBe("0");
    expect(formatChange(-0.001, PERCENT)).toBe("0");
  });
});

describe("a figure", () => {
  test("has two decimals by default, and the language's decimal separator", () => {
    expect(formatNumber(0.5, "en")).toBe("0.50");
    expect(formatNumber(0.5, "de")).toBe("0,50");
    expect(formatNumber(1234.56, "en", 0)).toBe("1,235");
    expect(formatNumber(0.0417, "en", 3)).toBe("0.042");
  });

  test("has a true minus sign, and none before zero", () => {
    expect(formatNumber(-0.25, "en")).toBe("−0.25");
    expect(formatNumber(-0.001, "en")).toBe("0.00");
  });
});

test("a date is shown with day and time in the language's order", () => {
  // Noon in Greenwich is the same day everywhere but on a few islands.
  expect(formatDate("2026-03-09T12:00:00Z", "en")).toMatch(/^Mar 9, 2026, \d{1,2}:\d\d\s[AP]M$/);
  expect(formatDate("2026-03-09T12:00:00Z", "de")).toMatch(/^09\.03\.2026, \d\d:\d\d$/);
});

test("identifiers become readable names", () => {
  expect(displayName("sick_non_tb")).toBe("Sick non TB");
  expect(displayName("active_tb")).toBe("Active TB");
  expect(displayName("healthy")).toBe("Healthy");
  expect(displayName("football")).toBe("Football");
});
