/** Texts of the teaching panel. */
export const en = {
  title: "Teach a finding",
  about:
    "A name, a sentence on how it looks, and boxes around it on this or other films. The model learns it within seconds.",
  name: "Name",
  namePlaceholder: "e.g. Cavity",
  called: (name: string) => `Programs will call it ${name}.`,
  description: "How it looks, in one sentence",
  descriptionPlaceholder: "e.g. Thick-walled lucency in the upper lobe.",
  examples: "Examples",
  noExamples:
    "None yet: draw a box around it on the film. Without any, the model goes by the sentence alone.",
  example: (number: number, film: string) => `Example ${number}, film ${film}`,
  removeExample: (number: number) => `Remove example ${number}`,
  otherFilms: "More examples from other films: open them from the list; this stays open.",
  useExample: "Use as an example",
  learn: "Learn it",
  learning: "The model learns …",
  stop: "Stop",
  failed: (why: string) => `It did not work: ${why}`,
  learntTitle: (title: string) => `${title}: learnt`,
  learntAbout:
    "Its map lies on the film now. Look at other films too, if you like. Nothing else changed: every other map and every probability is as before.",
  onThisFilm: (words: string) => `On this film: ${words}.`,
  showMap: "Show its map",
  hideMap: "Hide its map",
  keep: "Keep it: open films with it from now on",
  drop: "Discard it",
  carry: (count: number) => (count === 1 ? "Carry my correction over" : `Carry my ${count} corrections over`),
  leftBehind: (count: number) =>
    count === 1
      ? "One correction was not carried over, because the new model sees something else there. It is still in the earlier model's reading; draw it again if it holds."
      : `${count} corrections were not carried over, because the new model sees something else there. They are still in the earlier model's reading; draw them again if they hold.`,
};

export const de: typeof en = {
  title: "Befund beibringen",
  about:
    "Ein Name, ein Satz darüber, wie er aussieht, und Kästen darum auf dieser oder anderen Aufnahmen. Das Modell lernt ihn in Sekunden.",
  name: "Name",
  namePlaceholder: "z. B. Kaverne",
  called: (name) => `Programme nennen ihn ${name}.`,
  description: "Wie er aussieht, in einem Satz (englisch versteht das Modell besser)",
  descriptionPlaceholder: "z. B. Thick-walled lucency in the upper lobe.",
  examples: "Beispiele",
  noExamples:
    "Noch keine: Zeichnen Sie auf der Aufnahme einen Kasten darum. Ohne Beispiele gilt nur der Satz.",
  example: (number, film) => `Beispiel ${number}, Aufnahme ${film}`,
  removeExample: (number) => `Beispiel ${number} entfernen`,
  otherFilms:
    "Weitere Beispiele aus anderen Aufnahmen: Öffnen Sie diese aus der Liste; dies hier bleibt offen.",
  useExample: "Als Beispiel nehmen",
  learn: "Lernen",
  learning: "Das Modell lernt …",
  stop: "Anhalten",
  failed: (why) => `Es ging nicht: ${why}`,
  learntTitle: (title) => `${title}: gelernt`,
  learntAbout:
    "Die Karte liegt jetzt auf der Aufnahme. Sehen Sie sich gern auch andere an. Sonst hat sich nichts geändert: jede andere Karte und jede Wahrscheinlichkeit ist wie zuvor.",
  onThisFilm: (words) => `Auf dieser Aufnahme: ${words}.`,
  showMap: "Karte zeigen",
  hideMap: "Karte verbergen",
  keep: "Behalten: Aufnahmen ab jetzt damit öffnen",
  drop: "Verwerfen",
  carry: (count) => (count === 1 ? "Meine Korrektur mitnehmen" : `Meine ${count} Korrekturen mitnehmen`),
  leftBehind: (count) =>
    count === 1
      ? "Eine Korrektur wurde nicht mitgenommen, weil das neue Modell dort etwas anderes sieht. Beim früheren Modell steht sie noch; zeichnen Sie sie neu, wenn sie gilt."
      : `${count} Korrekturen wurden nicht mitgenommen, weil das neue Modell dort etwas anderes sieht. Beim früheren Modell stehen sie noch; zeichnen Sie sie neu, wenn sie gelten.`,
};
