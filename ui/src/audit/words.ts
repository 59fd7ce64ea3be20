import { displayName } from "../lib/format";
import type { CorrectionDetails, EventDetails } from "./eventDetails";

type Sentence = (details: EventDetails) => string;

const some = (numbers: number[]) =>
  numbers.length > 12 ? `${numbers.slice(0, 12).join(", ")} …` : numbers.join(", ");

export const en = {
  title: "Audit log",
  intro: "All actions on this server, the newest first. Any later change to an event can be detected.",
  forbidden: "Only administrators can see the log.",
  filters: "Filters",
  actor: "Who",
  kind: "What",
  film: "Film",
  study: "Study",
  since: "From",
  until: "To",
  anyKind: "anything",
  idHint: "16 characters",
  reset: "Show everything",
  older: "Older events",
  loadingOlder: "Loading older events …",
  noEvents: "The log is empty.",
  noMatch: "No event fits these filters.",
  events: "Events",
  intact: "The log is intact",
  notIntact: "The log is not intact",
  intactText: "Every event is linked to the one before it and sealed with this server's key.",
  notIntactText:
    "An event was altered or is missing. Stop the server, keep a copy of its room folder, and investigate.",
  verifying: "Checking every event …",
  verifiedAt: (when: string) => `checked ${when}`,
  count: (events: number) => (events === 1 ? "1 event" : `${events.toLocaleString("en")} events`),
  lastHash: "Hash of the last event",
  lastHashHint: "Keep a copy elsewhere: it proves later that no event was removed.",
  copy: "Copy",
  copied: "Copied",
  verify: "Check again",
  export: "Export the log",
  exporting: "Exporting …",
  exportHint: "As JSON lines. The export itself is logged.",
  details: "Details",
  detailsOf: (seq: number) => `Details of event ${seq}`,
  hash: "Hash",
  previous: "Hash of the event before",
  seal: "Seal",
  body: "Full record",
  toFilm: (film: string) => `film ${film.slice(0, 8)}`,
  onlyFilm: "only this film",
  onlyStudy: "only this study",
  model: "model",
  reason: (reason: string) => `“${reason}”`,
  predictionChange: (before: string, after: string) => `${before} → ${after}`,
  correction: (correction: CorrectionDetails) => {
    const concept = correction.concept === null ? null : displayName(correction.concept);
    if (correction.kind === "reject") return `“${concept ?? "none of the findings"}” is not on the film`;
    if (correction.kind === "not_box") return `no ${concept ?? "finding at all"} inside a box`;
    return `${concept ?? "something"} inside a box`;
  },
  kinds: {
    login: "logged in",
    "login.failed": "login failed",
    logout: "logged out",
    "film.arrived": "film added",
    "film.removed": "film removed",
    "study.opened": "film opened",
    "study.corrected": "correction",
    "study.withdrawn": "correction withdrawn",
    "study.redrawn": "box redrawn",
    "study.undone": "undone",
    "study.redone": "redone",
    "study.warned": "safety check warned",
    "concept.taught": "finding taught",
    "prototypes.discarded": "prototypes discarded",
    "prototypes.restored": "prototypes restored",
    "model.added": "model added",
    "model.put_to_use": "model in use changed",
    "model.measured": "model measured",
    "model.removed": "model removed",
    "user.added": "user added",
    "user.changed": "user changed",
    "token.created": "token created",
    "token.revoked": "token revoked",
    "log.exported": "log exported",
    "boxes.exported": "boxes exported",
    "readings.exported": "readings exported",
  } as Record<string, string>,
  sentences: {
    login: (d) => `${d.actor} logged in.`,
    "login.failed": (d) => `Somebody failed to log in as ${d.actor}.`,
    logout: (d) => `${d.actor} logged out.`,
    "film.arrived": (d) => `${d.actor} added a film${d.format && ` (${d.format})`}.`,
    "film.removed": (d) => `${d.actor} removed a film permanently.`,
    "study.opened": (d) => `${d.actor} opened a film.`,
    "study.corrected": (d) => {
      if (!d.correction) return `${d.actor} corrected the reading.`;
      const { against } = d.correction;
      return (
        `${d.actor} said: ${en.correction(d.correction)}` +
        (against ? `, and confirmed it although the model sees ${displayName(against)} there.` : ".")
      );
    },
    "study.withdrawn": (d) =>
      d.correction
        ? `${d.actor} withdrew a correction: ${en.correction(d.correction)}.`
        : `${d.actor} withdrew a correction.`,
    "study.redrawn": (d) => {
      if (!d.correction) return `${d.actor} redrew a box.`;
      const old = d.replaced ? `, in place of: ${en.correction(d.replaced)}` : "";
      return `${d.actor} redrew a box: ${en.correction(d.correction)}${old}.`;
    },
    "study.undone": (d) => `${d.actor} undid the last step.`,
    "study.redone": (d) => `${d.actor} redid a step.`,
    "study.warned": (d) =>
      `The safety check warned ${d.actor}: claimed ${displayName(d.claimed)}, the model sees ${displayName(d.dominant)}.`,
    "concept.taught": (d) =>
      `${d.actor} taught the finding ${displayName(d.concept)} with ${d.films === 1 ? "1 film" : `${d.films} films`}.`,
    "prototypes.discarded": (d) =>
      `${d.actor} discarded prototypes of ${displayName(d.concept)}: ${some(d.prototypes)}.`,
    "prototypes.restored": (d) =>
      `${d.actor} restored prototypes of ${displayName(d.concept)}: ${some(d.prototypes)}.`,
    "model.added": (d) => `A model was added to the server: ${d.name}.`,
    "model.put_to_use": (d) => `${d.actor} changed the model in use.`,
    "model.measured": (d) => `${d.actor} measured a model on ${d.dataSet}.`,
    "model.removed": (d) => `${d.actor} removed a model.`,
    "user.added": (d) => `${d.actor} added the user ${d.user} as ${d.role}.`,
    "user.changed": (d) =>
      `${d.actor} changed ${d.user}: ${d.role}${d.disabled ? ", disabled" : ""}${d.passwordChanged ? ", new password" : ""}.`,
    "token.created": (d) => `${d.actor} created a token for ${d.user} as ${d.role}.`,
    "token.revoked": (d) => `${d.actor} revoked a token.`,
    "log.exported": (d) => `${d.actor} exported the log.`,
    "boxes.exported": (d) => `${d.actor} exported all boxes (${d.format}).`,
    "readings.exported": (d) => `${d.actor} exported all readings (${d.format}).`,
  } as Record<string, Sentence>,
  other: (d: EventDetails, kind: string) => `${d.actor}: ${kind}`,
};

const ROLES: Record<string, string> = { reader: "Befundung", curator: "Modellpflege", admin: "Verwaltung" };
const films = (count: number) => (count === 1 ? "1 Aufnahme" : `${count} Aufnahmen`);

export const de: typeof en = {
  title: "Protokoll",
  intro: "Alle Aktionen auf diesem Server, die neuesten zuerst. Jede nachträgliche Änderung ist nachweisbar.",
  forbidden: "Nur die Verwaltung kann das Protokoll einsehen.",
  filters: "Filter",
  actor: "Wer",
  kind: "Was",
  film: "Aufnahme",
  study: "Befundung",
  since: "Von",
  until: "Bis",
  anyKind: "alles",
  idHint: "16 Zeichen",
  reset: "Alles zeigen",
  older: "Ältere Einträge",
  loadingOlder: "Ältere Einträge werden geladen …",
  noEvents: "Das Protokoll ist leer.",
  noMatch: "Kein Eintrag passt zu diesen Filtern.",
  events: "Einträge",
  intact: "Das Protokoll ist unversehrt",
  notIntact: "Das Protokoll ist nicht unversehrt",
  intactText: "Jeder Eintrag ist mit dem vorigen verknüpft und mit dem Schlüssel dieses Servers versiegelt.",
  notIntactText:
    "Ein Eintrag wurde verändert oder fehlt. Halten Sie den Server an, sichern Sie eine Kopie seines Ordners, und gehen Sie der Sache nach.",
  verifying: "Jeder Eintrag wird geprüft …",
  verifiedAt: (when) => `geprüft am ${when}`,
  count: (events) => (events === 1 ? "1 Eintrag" : `${events.toLocaleString("de")} Einträge`),
  lastHash: "Prüfsumme des letzten Eintrags",
  lastHashHint:
    "Bewahren Sie eine Kopie andernorts auf: Sie belegt später, dass kein Eintrag entfernt wurde.",
  copy: "Kopieren",
  copied: "Kopiert",
  verify: "Erneut prüfen",
  export: "Protokoll exportieren",
  exporting: "Wird exportiert …",
  exportHint: "Als JSON-Zeilen. Auch der Export wird protokolliert.",
  details: "Einzelheiten",
  detailsOf: (seq) => `Einzelheiten zu Eintrag ${seq}`,
  hash: "Prüfsumme",
  previous: "Prüfsumme des vorigen Eintrags",
  seal: "Siegel",
  body: "Vollständiger Eintrag",
  toFilm: (film) => `Aufnahme ${film.slice(0, 8)}`,
  onlyFilm: "nur diese Aufnahme",
  onlyStudy: "nur diese Befundung",
  model: "Modell",
  reason: (reason) => `„${reason}“`,
  predictionChange: (before, after) => `${before} → ${after}`,
  correction: (correction) => {
    const concept = correction.concept === null ? null : displayName(correction.concept);
    if (correction.kind === "reject")
      return `„${concept ?? "Keiner der Befunde"}“ ist nicht auf der Aufnahme`;
    if (correction.kind === "not_box")
      return `in einem Kasten ist ${concept === null ? "gar nichts" : `„${concept}“ nicht`} zu sehen`;
    return `in einem Kasten ist ${concept === null ? "etwas" : `„${concept}“`} zu sehen`;
  },
  kinds: {
    login: "angemeldet",
    "login.failed": "Anmeldung fehlgeschlagen",
    logout: "abgemeldet",
    "film.arrived": "Aufnahme hinzugefügt",
    "film.removed": "Aufnahme entfernt",
    "study.opened": "Aufnahme geöffnet",
    "study.corrected": "Korrektur",
    "study.withdrawn": "Korrektur zurückgezogen",
    "study.redrawn": "Kasten neu gezeichnet",
    "study.undone": "rückgängig gemacht",
    "study.redone": "wiederhergestellt",
    "study.warned": "Warnung der Sicherheitsprüfung",
    "concept.taught": "Befund beigebracht",
    "prototypes.discarded": "Prototypen verworfen",
    "prototypes.restored": "Prototypen wiederhergestellt",
    "model.added": "Modell hinzugekommen",
    "model.put_to_use": "Modell aktiviert",
    "model.measured": "Modell gemessen",
    "model.removed": "Modell entfernt",
    "user.added": "Person hinzugefügt",
    "user.changed": "Person geändert",
    "token.created": "Zugangsschlüssel erstellt",
    "token.revoked": "Zugangsschlüssel widerrufen",
    "log.exported": "Protokoll exportiert",
    "boxes.exported": "Kästen exportiert",
    "readings.exported": "Befundungen exportiert",
  },
  sentences: {
    login: (d) => `${d.actor} hat sich angemeldet.`,
    "login.failed": (d) => `Eine Anmeldung als ${d.actor} ist fehlgeschlagen.`,
    logout: (d) => `${d.actor} hat sich abgemeldet.`,
    "film.arrived": (d) => `${d.actor} hat eine Aufnahme hinzugefügt${d.format && ` (${d.format})`}.`,
    "film.removed": (d) => `${d.actor} hat eine Aufnahme endgültig entfernt.`,
    "study.opened": (d) => `${d.actor} hat eine Aufnahme geöffnet.`,
    "study.corrected": (d) => {
      if (!d.correction) return `${d.actor} hat die Befundung korrigiert.`;
      const { against } = d.correction;
      return (
        `${d.actor} gab an: ${de.correction(d.correction)}` +
        (against ? `, und bestätigte es, obwohl das Modell dort „${displayName(against)}“ sieht.` : ".")
      );
    },
    "study.withdrawn": (d) =>
      d.correction
        ? `${d.actor} hat eine Korrektur zurückgezogen: ${de.correction(d.correction)}.`
        : `${d.actor} hat eine Korrektur zurückgezogen.`,
    "study.redrawn": (d) => {
      if (!d.correction) return `${d.actor} hat einen Kasten neu gezeichnet.`;
      const old = d.replaced ? `, anstelle von: ${de.correction(d.replaced)}` : "";
      return `${d.actor} hat einen Kasten neu gezeichnet: ${de.correction(d.correction)}${old}.`;
    },
    "study.undone": (d) => `${d.actor} hat den letzten Schritt zurückgenommen.`,
    "study.redone": (d) => `${d.actor} hat einen Schritt wiederhergestellt.`,
    "study.warned": (d) =>
      `Die Sicherheitsprüfung warnte ${d.actor}: angegeben wurde „${displayName(d.claimed)}“, das Modell sieht „${displayName(d.dominant)}“.`,
    "concept.taught": (d) =>
      `${d.actor} hat den Befund „${displayName(d.concept)}“ an ${films(d.films)} beigebracht.`,
    "prototypes.discarded": (d) =>
      `${d.actor} hat Prototypen von „${displayName(d.concept)}“ verworfen: ${some(d.prototypes)}.`,
    "prototypes.restored": (d) =>
      `${d.actor} hat Prototypen von „${displayName(d.concept)}“ wiederhergestellt: ${some(d.prototypes)}.`,
    "model.added": (d) => `Dem Server wurde ein Modell hinzugefügt: ${d.name}.`,
    "model.put_to_use": (d) => `${d.actor} hat ein anderes Modell aktiviert.`,
    "model.measured": (d) => `${d.actor} hat ein Modell an ${d.dataSet} gemessen.`,
    "model.removed": (d) => `${d.actor} hat ein Modell entfernt.`,
    "user.added": (d) => `${d.actor} hat ${d.user} hinzugefügt (${ROLES[d.role] ?? d.role}).`,
    "user.changed": (d) =>
      `${d.actor} hat ${d.user} geändert: ${ROLES[d.role] ?? d.role}${d.disabled ? ", gesperrt" : ""}${d.passwordChanged ? ", neues Passwort" : ""}.`,
    "token.created": (d) =>
      `${d.actor} hat einen Zugangsschlüssel für ${d.user} erstellt (${ROLES[d.role] ?? d.role}).`,
    "token.revoked": (d) => `${d.actor} hat einen Zugangsschlüssel widerrufen.`,
    "log.exported": (d) => `${d.actor} hat das Protokoll exportiert.`,
    "boxes.exported": (d) => `${d.actor} hat alle Kästen exportiert (${d.format}).`,
    "readings.exported": (d) => `${d.actor} hat alle Befundungen exportiert (${d.format}).`,
  },
  other: (d, kind) => `${d.actor}: ${kind}`,
};
