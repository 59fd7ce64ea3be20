/** The user's settings, stored in the browser. */
import { createKeptStore } from "../lib/store";

export interface Settings {
  language: "en" | "de";
  theme: "dark" | "light";
  /** Unit of box sizes. */
  lengths: "millimetres" | "pixels";
  /** Format of probabilities. */
  shares: "percent" | "decimals";
  /** Single letters are keyboard shortcuts. */
  keys: boolean;
}

const DEFAULTS: Settings = {
  language: navigator.language.startsWith("de") ? "de" : "en",
  theme: "dark",
  lengths: "millimetres",
  shares: "percent",
  keys: true,
};

export const settings = createKeptStore<Settings>("medgrape.settings", DEFAULTS, "localStorage");
