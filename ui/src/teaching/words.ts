/** Texts of the teaching panel. */
export const en = {
  title: "Teach a finding",
  about:
    "Give the finding a name, describe how it looks in one sentence, and draw boxes around it on this or other films. Learning takes a few seconds.",
  name: "Name",
  namePlaceholder: "e.g. Cavity",
  identifier: (name: string) => `Its identifier in files and programs: ${name}`,
  description: "How it looks, in one sentence",
  descriptionPlaceholder: "e.g. Thick-walled lucency in the upper lobe.",
  examples: "Examples",
  noExamples:
    "None yet. Draw a box around the finding on the film. Without examples, the model uses the sentence only.",
  example: (number: number, film: string) => `Example ${number}, film ${film}`,
  removeExample: (number: number) => `Remove example ${number}`,
  otherFilms: "To add examples from other films, open them from the film list. This panel stays open.",
  useExample: "Use as an example",
  learn: "Learn it",
  learning: "The model is learning …",
  stop: "Stop",
  failed: (why: string) => `Teaching failed: ${why}`,
  learntTitle: (title: string) => `${title}: learnt`,
  learntHint:
    "Its map is now shown on the film. You can also check it on other films. All other maps and all probabilities are unchanged.",
  onThisFilm: (words: string) => `On this film: ${words}.`,
  showMap: "Show its map",
  hideMap: "Hide its map",
  keep: "Keep it: use this model from now on",
  discard: "Discard it",
  carry: (count: number) => (count === 1 ? "Carry my correction over" : `Carry my ${count} corrections over`),
  notCarriedOver: (count: number) =>
    count === 1
      ? "One correction was not carried over, because the new model sees another finding there. It is still stored with the earlier model. Draw it again if it is right."
      : `${count} corrections were not carried over, because the new model sees other findings there. They are still stored with the earlier model. Draw them again if they are right.`,
};

export const de: typeof en = {
  title: "Befund beibringen",
  about:
    "Geben Sie dem Befund einen Namen, beschreiben Sie in einem Satz, wie er aussieht, und zeichnen Sie Kästen darum, auf dieser oder anderen Aufnahmen. Das Lernen dauert wenige Sekunden.",
  name: "Name",
  namePlaceholder: "z. B. Kaverne",
  identifier: (name) => `Seine Kennung in Dateien und Programmen: ${name}`,
  description: "Wie er aussieht, in einem Satz (englisch versteht das Modell besser)",
  descriptionPlaceholder: "z. B. Thick-walled lucency in the upper lobe.",
  examples: "Beispiele",
  noExamples:
    "Noch keine. Zeichnen Sie auf der Aufnahme einen Kasten um den Befund. Ohne Beispiele nutzt das Modell nur den Satz.",
  example: (number, film) => `Beispiel ${number}, Aufnahme ${film}`,
  removeExample: (number) => `Beispiel ${number} entfernen`,
  otherFilms: "Für Beispiele aus anderen Aufnahmen öffnen Sie diese aus der Liste. Dieses Feld bleibt offen.",
  useExample: "Als Beispiel nehmen",
  learn: "Lernen",
  learning: "Das Modell lernt …",
  stop: "Anhalten",
  failed: (why) => `Das Lernen ist fehlgeschlagen: ${why}`,
  learntTitle: (title) => `${title}: gelernt`,
  learntHint:
    "Seine Karte liegt jetzt auf der Aufnahme. Sie können ihn auch auf anderen Aufnahmen prüfen. Alle anderen Karten und alle Wahrscheinlichkeiten sind unverändert.",
  onThisFilm: (words) => `Auf dieser Aufnahme: ${words}.`,
  showMap: "Karte zeigen",
  hideMap: "Karte verbergen",
  keep: "Behalten: ab jetzt dieses Modell verwenden",
  discard: "Verwerfen",
  carry: (count) => (count === 1 ? "Meine Korrektur übernehmen" : `Meine ${count} Korrekturen übernehmen`),
  notCarriedOver: (count) =>
    count === 1
      ? "Eine Korrektur wurde nicht übernommen, weil das neue Modell dort einen anderen Befund sieht. Beim früheren Modell ist sie noch gespeichert. Zeichnen Sie sie neu, wenn sie richtig ist."
      : `${count} Korrekturen wurden nicht übernommen, weil das neue Modell dort andere Befunde sieht. Beim früheren Modell sind sie noch gespeichert. Zeichnen Sie sie neu, wenn sie richtig sind.`,
};
