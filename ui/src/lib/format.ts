/** Numbers and dates in the user's preferred format. */
import type { Settings } from "../settings/settings";

type NumberPreferences = Pick<Settings, "language" | "shares">;

export function formatProbability(value: number, { language, shares }: NumberPreferences): string {
  return shares === "percent"
    ? new Intl.NumberFormat(language, {
        style: "percent",
        // Close to 0 or 1, one more digit: 0.4% must not become 0%, nor 99.6% become 100%.
        maximumFractionDigits: (value > 0 && value < 0.01) || (value > 0.99 && value < 1) ? 1 : 0,
      }).format(value)
    : formatNumber(value, language);
}

/** A difference of two probabilities, with its sign. */
export function formatChange(value: number, { language, shares }: NumberPreferences): string {
  const digits = shares === "percent" ? 0 : 2;
  const times = shares === "percent" ? 100 : 1;
  const text = new Intl.NumberFormat(language, {
    signDisplay: "exceptZero",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(value * times);
  return text.replace("-", "−");
}

export function formatNumber(value: number, language: string, digits = 2): string {
  return new Intl.NumberFormat(language, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    // No minus sign before a number that rounds to 0.
    signDisplay: "negative",
  })
    .format(value)
    .replace("-", "−");
}

export function formatDate(iso: string, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso));
}

/** A class name for people: `sick_non_tb` becomes "Sick non TB". */
export function displayName(name: string): string {
  const words = name.replaceAll("_", " ").replace(/\btb\b/gi, "TB");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
