export const en = {
  title: "Log in",
  renewalTitle: "Your session has ended",
  renewalText: "Log in again. Your work is kept, and interrupted saving continues.",
  name: "Name",
  password: "Password",
  logIn: "Log in",
  loggingIn: "Logging in …",
  provider: "Log in through your organisation",
  or: "or",
  providerHint: "You leave this page for a moment. Applied corrections are saved on the server.",
  refused: "Name or password is wrong, or there were too many attempts. Check both, or wait a little.",
  intro: "Read chest X-rays with a model whose findings you can see, check and correct.",
  notice: "Research software, not a medical device. Do not use it to diagnose or treat patients.",
};

export const de: typeof en = {
  title: "Anmelden",
  renewalTitle: "Ihre Sitzung ist abgelaufen",
  renewalText:
    "Melden Sie sich erneut an. Ihre Arbeit ist erhalten, und unterbrochenes Speichern wird fortgesetzt.",
  name: "Name",
  password: "Passwort",
  logIn: "Anmelden",
  loggingIn: "Anmeldung läuft …",
  provider: "Über Ihre Einrichtung anmelden",
  or: "oder",
  providerHint: "Sie verlassen diese Seite kurz. Angewendete Korrekturen sind auf dem Server gespeichert.",
  refused:
    "Name oder Passwort ist falsch, oder es waren zu viele Versuche. Prüfen Sie beides, oder warten Sie etwas.",
  intro:
    "Thoraxaufnahmen befunden mit einem Modell, dessen Befunde Sie sehen, prüfen und korrigieren können.",
  notice: "Forschungssoftware, kein Medizinprodukt. Nicht für Diagnose oder Behandlung bestimmt.",
};
