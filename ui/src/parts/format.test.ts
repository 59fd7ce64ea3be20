import { describe, expect, test } from "vitest";

import { figure, moment, readable, share, shift } from "./format";

const PERCENT = { language: "en", shares: "percent" } as const;
const DECIMALS = { language: "en", shares: "decimals" } as const;
const GERMAN = { language: "de", shares: "percent" } as const;
const GERMAN_DECIMALS = { language: "de", shares: "decimals" } as const;
/** Languages put spaces of their own before a percent sign. */
const plain = (told: string) => told.replace(/\s/g, " ");

describe("a probability", () => {
  test("is told in per cent or as a decimal, as somebody likes", () => {
    expect(share(0.874, PERCENT)).toBe("87%");
    expect(share(0.874, DECIMALS)).toBe("0.87");
    expect(plain(share(0.874, GERMAN))).toBe("87 %");
    expect(share(0.874, GERMAN_DECIMALS)).toBe("0,87");
  });

  test("below one per cent is not rounded away", () => {
    expect(share(0.004, PERCENT)).toBe("0.4%");
    expect(share(0, PERCENT)).toBe("0%");
    expect(share(1, PERCENT)).toBe("100%");
  });
});

describe("a difference of probabilities", () => {
  test("carries its sign, and a true minus", () => {
    expect(shift(0.12, PERCENT)).toBe("+12");
    expect(shift(-0.12, PERCENT)).toBe("−12");
    expect(shift(-0.123, DECIMALS)).toBe("−0.12");
    expect(shift(0.123, GERMAN_DECIMALS)).toBe("+0,12");
  });

  test("that rounds to nothing has no sign", () => {
    expect(shift(0.001, PERCENT)).toBe("0");
    expect(shift(-0.001, PERCENT)).toBe("0");
  });
});

describe("a figure", () => {
  test("has two digits unless told otherwise, and the language's own point", () => {
    expect(figure(0.5, "en")).toBe("0.50");
    expect(figure(0.5, "de")).toBe("0,50");
    expect(figure(1234.56, "en", 0)).toBe("1,235");
    expect(figure(0.0417, "en", 3)).toBe("0.042");
  });

  test("has a true minus, and none before a nought", () => {
    expect(figure(-0.25, "en")).toBe("−0.25");
    expect(figure(-0.001, "en")).toBe("0.00");
  });
});

test("a moment is told with day and time in the language's own order", () => {
  // Noon in Greenwich is the same day everywhere but on a few islands.
  expect(moment("2026-03-09T12:00:00Z", "en")).toMatch(/^Mar 9, 2026, \d{1,2}:\d\d\s[AP]M$/);
  expect(moment("2026-03-09T12:00:00Z", "de")).toMatch(/^09\.03\.2026, \d\d:\d\d$/);
});

test("names for programs are told as names for people", () => {
  expect(readable("sick_non_tb")).toBe("Sick non TB");
  expect(readable("active_tb")).toBe("Active TB");
  expect(readable("healthy")).toBe("Healthy");
  expect(readable("football")).toBe("Football");
});
