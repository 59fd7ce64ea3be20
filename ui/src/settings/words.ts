export const en = {
  title: "Settings",
  storedHint: "Stored in this browser only.",
  language: "Language",
  languages: { en: "English", de: "Deutsch" },
  theme: "Appearance",
  themes: { dark: "Dark, for the reading room", light: "Light, for bright rooms" },
  lengths: "Sizes of boxes",
  lengthUnits: {
    millimetres: "Millimetres, if the film's pixel spacing is known",
    pixels: "Pixels of the film",
  },
  shares: "Probabilities",
  probabilityFormats: { percent: "Percent (91%)", decimals: "Decimals (0.91)" },
  keyboard: "Keyboard",
  keys: "Single letters are shortcuts",
  done: "Done",
};

export const de: typeof en = {
  title: "Einstellungen",
  storedHint: "Nur in diesem Browser gespeichert.",
  language: "Sprache",
  languages: { en: "English", de: "Deutsch" },
  theme: "Darstellung",
  themes: { dark: "Dunkel, für den Befundungsraum", light: "Hell, für helle Räume" },
  lengths: "Größe von Kästen",
  lengthUnits: {
    millimetres: "Millimeter, wenn der Pixelabstand der Aufnahme bekannt ist",
    pixels: "Pixel der Aufnahme",
  },
  shares: "Wahrscheinlichkeiten",
  probabilityFormats: { percent: "Prozent (91 %)", decimals: "Dezimal (0,91)" },
  keyboard: "Tastatur",
  keys: "Einzelne Buchstaben sind Tastenkürzel",
  done: "Fertig",
};
