/** Figures and times as somebody likes to read them. */
import type { Settings } from "../settings/settings";

type Liking = Pick<Settings, "language" | "shares">;

export function share(value: number, { language, shares }: Liking): string {
  return shares === "percent"
    ? new Intl.NumberFormat(language, {
        style: "percent",
        // Neither a rare class nor a doubt is rounded away.
        maximumFractionDigits: (value > 0 && value < 0.01) || (value > 0.99 && value < 1) ? 1 : 0,
      }).format(value)
    : figure(value, language);
}

/** A difference of two shares, with its sign. */
export function shift(value: number, { language, shares }: Liking): string {
  const digits = shares === "percent" ? 0 : 2;
  const times = shares === "percent" ? 100 : 1;
  const told = new Intl.NumberFormat(language, {
    signDisplay: "exceptZero",
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(value * times);
  return told.replace("-", "−");
}

export function figure(value: number, language: string, digits = 2): string {
  return new Intl.NumberFormat(language, {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    // No minus before a nought that was only rounded to one.
    signDisplay: "negative",
  })
    .format(value)
    .replace("-", "−");
}

export function moment(iso: string, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso));
}

/** `sick_non_tb` as one would write it; models name classes for programs. */
export function readable(name: string): string {
  const words = name.replaceAll("_", " ").replace(/\btb\b/gi, "TB");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
