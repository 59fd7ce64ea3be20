/** How somebody likes the page; kept in their browser. */
import { createKeptStore } from "../parts/store";

export interface Settings {
  language: "en" | "de";
  theme: "dark" | "light";
  /** How large a box is told. */
  lengths: "millimetres" | "pixels";
  /** How probabilities are told. */
  shares: "percent" | "decimals";
  /** Whether single letters are keys. */
  keys: boolean;
}

const FIRST: Settings = {
  language: navigator.language.startsWith("de") ? "de" : "en",
  theme: "dark",
  lengths: "millimetres",
  shares: "percent",
  keys: true,
};

export const settings = createKeptStore<Settings>("medgrape.settings", FIRST, "localStorage");
