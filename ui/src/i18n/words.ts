/** All texts of the page in all languages. Each screen has its own texts beside it. */
import * as atlas from "../atlas/words";
import * as audit from "../audit/words";
import { useStore } from "../lib/store";
import * as login from "../login/words";
import { de as modelDe } from "../model/words.de";
import { en as modelEn } from "../model/words.en";
import { de as readingDe } from "../reading/words.de";
import { en as readingEn } from "../reading/words.en";
import { settings } from "../settings/settings";
import * as settingsWords from "../settings/words";
import * as teaching from "../teaching/words";
import * as worklist from "../worklist/words";
import * as common from "./common";

const SCREENS = {
  atlas,
  audit,
  common,
  login,
  model: { en: modelEn, de: modelDe },
  reading: { en: readingEn, de: readingDe },
  settings: settingsWords,
  teaching,
  worklist,
};

export type Words = { [Screen in keyof typeof SCREENS]: (typeof SCREENS)[Screen]["en"] };

function wordsIn(language: "en" | "de"): Words {
  return Object.fromEntries(Object.entries(SCREENS).map(([name, words]) => [name, words[language]])) as Words;
}

export const WORDS = { en: wordsIn("en"), de: wordsIn("de") };

export function useWords(): Words {
  return WORDS[useStore(settings).language];
}
