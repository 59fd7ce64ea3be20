export const en = {
  title: "Settings",
  kept: "Kept in this browser only.",
  language: "Language",
  languages: { en: "English", de: "Deutsch" },
  theme: "Appearance",
  themes: { dark: "Dark, for the reading room", light: "Light, for bright rooms" },
  lengths: "Sizes of boxes",
  lengthsTold: { millimetres: "Millimetres, where the film tells its spacing", pixels: "Pixels of the film" },
  shares: "Probabilities",
  sharesTold: { percent: "Percent (91%)", decimals: "Decimals (0.91)" },
  keyboard: "Keyboard",
  keys: "Single letters are shortcuts",
  done: "Done",
};

export const de: typeof en = {
  title: "Einstellungen",
  kept: "Gelten nur in diesem Browser.",
  language: "Sprache",
  languages: { en: "English", de: "Deutsch" },
  theme: "Darstellung",
  themes: { dark: "Dunkel, für den Befundungsraum", light: "Hell, für helle Räume" },
  lengths: "Größe von Kästen",
  lengthsTold: {
    millimetres: "Millimeter, wenn die Aufnahme ihren Pixelabstand angibt",
    pixels: "Pixel der Aufnahme",
  },
  shares: "Wahrscheinlichkeiten",
  sharesTold: { percent: "Prozent (91 %)", decimals: "Dezimal (0,91)" },
  keyboard: "Tastatur",
  keys: "Einzelne Buchstaben sind Tastenkürzel",
  done: "Fertig",
};
