/** How findings and corrections are shown: title, colour, sentence. */
import type { Correction } from "../api/types";
import type { Words } from "../i18n/words";
import type { StudyData } from "./useStudyData";

/** Okabe-Ito palette, safe for colour-blind readers; the Python package draws with the same colours. */
const OKABE_ITO = ["#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"] as const;

/** Colours repeat when the model knows more findings than the palette has colours. */
export function paletteColour(position: number): string {
  return OKABE_ITO[Math.max(position, 0) % OKABE_ITO.length] ?? OKABE_ITO[0];
}

/** Colour of a finding, by its position in the model's list. */
export function conceptColour({ concepts }: StudyData, name: string | null): string {
  return paletteColour(concepts.findIndex((concept) => concept.name === name));
}

export function conceptTitle({ concepts }: StudyData, name: string | null, words: Words["reading"]): string {
  if (name === null) return words.anyFinding;
  return concepts.find((concept) => concept.name === name)?.title ?? name;
}

/** A correction as a sentence: "Cavity is here". */
export function describeCorrection(
  studyData: StudyData,
  correction: Correction,
  words: Words["reading"],
): string {
  const title = conceptTitle(studyData, correction.concept ?? null, words);
  if (correction.kind === "reject") return words.rejected(title);
  return correction.kind === "box" ? words.boxFor(title) : words.boxAgainst(title);
}
