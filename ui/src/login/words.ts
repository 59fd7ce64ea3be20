export const en = {
  title: "Log in",
  endedTitle: "Your session has ended",
  ended: "Log in again. Everything you did is kept, and whatever was under way goes on where it was.",
  name: "Name",
  password: "Password",
  enter: "Log in",
  entering: "Logging in …",
  provider: "Log in through your organisation",
  or: "or",
  providerAgain: "You leave this page for a moment; corrections that were applied are safe on the server.",
  refused: "Name or password is wrong, or there were too many attempts. Check both, or wait a little.",
  intro: "A reading room for chest X-rays: findings that one can point at, and correct.",
  notice: "Research software, not a medical device. Do not use it to diagnose or treat patients.",
};

export const de: typeof en = {
  title: "Anmelden",
  endedTitle: "Ihre Sitzung ist abgelaufen",
  ended: "Melden Sie sich erneut an. Ihre Arbeit ist erhalten, und was gerade lief, geht danach weiter.",
  name: "Name",
  password: "Passwort",
  enter: "Anmelden",
  entering: "Anmeldung läuft …",
  provider: "Über Ihre Einrichtung anmelden",
  or: "oder",
  providerAgain: "Sie verlassen diese Seite kurz; angewendete Korrekturen sind auf dem Server gespeichert.",
  refused:
    "Name oder Passwort ist falsch, oder es waren zu viele Versuche. Prüfen Sie beides, oder warten Sie etwas.",
  intro: "Ein Befundungsraum für Thoraxaufnahmen: Befunde, auf die man zeigen und die man korrigieren kann.",
  notice: "Forschungssoftware, kein Medizinprodukt. Nicht für Diagnose oder Behandlung bestimmt.",
};
