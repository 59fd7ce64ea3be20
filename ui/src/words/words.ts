/** Everything that the page says, in every language it speaks. Each screen keeps its own words beside it. */
import * as atlas from "../atlas/words";
import * as audit from "../audit/words";
import * as model from "../model/words";
import * as reading from "../reading/words";
import * as session from "../session/words";
import * as settingsWords from "../settings/words";
import { settings } from "../settings/settings";
import { useStore } from "../parts/store";
import * as teaching from "../teaching/words";
import * as worklist from "../worklist/words";
import * as common from "./common";

const screens = {
  atlas,
  audit,
  common,
  model,
  reading,
  session,
  settings: settingsWords,
  teaching,
  worklist,
};

export type Words = { [Screen in keyof typeof screens]: (typeof screens)[Screen]["en"] };

function spoken(language: "en" | "de"): Words {
  return Object.fromEntries(Object.entries(screens).map(([name, words]) => [name, words[language]])) as Words;
}

export const WORDS = { en: spoken("en"), de: spoken("de") };

export function useWords(): Words {
  return WORDS[useStore(settings).language];
}
