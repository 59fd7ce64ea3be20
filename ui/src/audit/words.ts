import { displayName } from "../lib/format";
import type { EventDetails, CorrectionDetails } from "./eventDetails";

type Sentence = (details: EventDetails) => string;

const some = (numbers: number[]) =>
  numbers.length > 12 ? `${numbers.slice(0, 12).join(", ")} …` : numbers.join(", ");

export const en = {
  title: "Audit log",
  intro:
    "Everything that anybody did in this room, the newest first. Events cannot be changed without a trace.",
  forbidden: "Only an administrator may look at the log.",
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
  loadingOlder: "Fetching older events …",
  noEvents: "The log is empty.",
  noMatch: "No event fits these filters.",
  events: "Events",
  whole: "The log is whole",
  broken: "The log is not whole",
  wholeText: "Every event follows the one before it, and all are sealed with this room's key.",
  brokenText:
    "Something was altered or is missing. Stop the server, keep a copy of the room and look into it.",
  verifying: "Every event is being checked …",
  verifiedAt: (when: string) => `checked ${when}`,
  count: (events: number) => (events === 1 ? "1 event" : `${events.toLocaleString("en")} events`),
  head: "Hash of the last event",
  headHint: "Written down elsewhere, it proves later that nothing was removed.",
  copy: "Copy",
  copied: "Copied",
  verify: "Check again",
  export: "Export the log",
  exporting: "Exporting …",
  exportHint: "As lines of JSON. That it was exported is itself written down.",
  details: "Details",
  detailsOf: (seq: number) => `Details of event ${seq}`,
  hash: "Hash",
  previous: "Hash of the event before",
  seal: "Seal",
  body: "All that is known of it",
  toFilm: (film: string) => `film ${film.slice(0, 8)}`,
  onlyFilm: "only this film",
  onlyStudy: "only this study",
  model: "model",
  reason: (reason: string) => `“${reason}”`,
  moved: (before: string, after: string) => `${before} → ${after}`,
  every: "every finding",
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
    "model.put_to_use": "model put to use",
    "model.measured": "model measured",
    "model.removed": "model removed",
    "user.added": "user added",
    "user.changed": "user changed",
    "token.created": "token made",
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
    "film.removed": (d) => `${d.actor} removed a film for good.`,
    "study.opened": (d) => `${d.actor} opened a film.`,
    "study.corrected": (d) => {
      if (!d.correction) return `${d.actor} corrected the reading.`;
      const { against } = d.correction;
      return (
        `${d.actor} said: ${en.correction(d.correction)}` +
        (against ? `, and confirmed it though the model sees ${displayName(against)} there.` : ".")
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
      `${d.actor} taught ${displayName(d.concept)} with ${d.films === 1 ? "1 film" : `${d.films} films`}.`,
    "prototypes.discarded": (d) =>
      `${d.actor} discarded prototypes of ${displayName(d.concept)}: ${some(d.prototypes)}.`,
    "prototypes.restored": (d) =>
      `${d.actor} restored prototypes of ${displayName(d.concept)}: ${some(d.prototypes)}.`,
    "model.added": (d) => `A model was given to the server: ${d.name}.`,
    "model.put_to_use": (d) => `${d.actor} put a model to use.`,
    "model.measured": (d) => `${d.actor} had a model measured on ${d.dataSet}.`,
    "model.removed": (d) => `${d.actor} removed a model.`,
    "user.added": (d) => `${d.actor} let ${d.user} in as ${d.role}.`,
    "user.changed": (d) =>
      `${d.actor} changed ${d.user}: ${d.role}${d.disabled ? ", disabled" : ""}${d.passwordChanged ? ", new password" : ""}.`,
    "token.created": (d) => `${d.actor} made a token for ${d.user} as ${d.role}.`,
    "token.revoked": (d) => `${d.actor} revoked a token.`,
    "log.exported": (d) => `${d.actor} exported the log.`,
    "boxes.exported": (d) => `${d.actor} exported all boxes (${d.format}).`,
    "readings.exported": (d) => `${d.actor} exported all readings (${d.format}).`,
  } as Record<string, Sentence>,
  other: (d: EventDetails, kind: string) => `${d.actor}: ${kind}`,
};

const ROLES: Record<string, string> = { reader: "liest", curator: "pflegt Modelle", admin: "verwaltet" };
const films = (count: number) => (count === 1 ? "1 Aufnahme" : `${count} Aufnahmen`);

export const de: typeof en = {
  title: "Protokoll",
  intro:
    "Alles, was in diesem Raum getan wurde, das Neueste zuerst. Einträge lassen sich nicht spurlos ändern.",
  forbidden: "Nur wer den Raum verwaltet, darf das Protokoll einsehen.",
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
  loadingOlder: "Ältere Einträge werden geholt …",
  noEvents: "Das Protokoll ist leer.",
  noMatch: "Kein Eintrag passt zu diesen Filtern.",
  events: "Einträge",
  whole: "Das Protokoll ist vollständig",
  broken: "Das Protokoll ist nicht vollständig",
  wholeText: "Jeder Eintrag folgt auf den vorigen, und alle sind mit dem Schlüssel dieses Raums versiegelt.",
  brokenText:
    "Etwas wurde verändert oder fehlt. Halten Sie den Server an, sichern Sie den Raum und gehen Sie der Sache nach.",
  verifying: "Jeder Eintrag wird geprüft …",
  verifiedAt: (when) => `geprüft am ${when}`,
  count: (events) => (events === 1 ? "1 Eintrag" : `${events.toLocaleString("de")} Einträge`),
  head: "Prüfsumme des letzten Eintrags",
  headHint: "Andernorts notiert, belegt sie später, dass nichts entfernt wurde.",
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
  body: "Alles, was darüber bekannt ist",
  toFilm: (film) => `Aufnahme ${film.slice(0, 8)}`,
  onlyFilm: "nur diese Aufnahme",
  onlyStudy: "nur diese Befundung",
  model: "Modell",
  reason: (reason) => `„${reason}“`,
  moved: (before, after) => `${before} → ${after}`,
  every: "jeder Befund",
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
    "model.put_to_use": "Modell in Gebrauch genommen",
    "model.measured": "Modell gemessen",
    "model.removed": "Modell entfernt",
    "user.added": "Person zugelassen",
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
    "concept.taught": (d) => `${d.actor} hat „${displayName(d.concept)}“ an ${films(d.films)} beigebracht.`,
    "prototypes.discarded": (d) =>
      `${d.actor} hat Prototypen von „${displayName(d.concept)}“ verworfen: ${some(d.prototypes)}.`,
    "prototypes.restored": (d) =>
      `${d.actor} hat Prototypen von „${displayName(d.concept)}“ wiederhergestellt: ${some(d.prototypes)}.`,
    "model.added": (d) => `Dem Server wurde ein Modell gegeben: ${d.name}.`,
    "model.put_to_use": (d) => `${d.actor} hat ein Modell in Gebrauch genommen.`,
    "model.measured": (d) => `${d.actor} hat ein Modell an ${d.dataSet} messen lassen.`,
    "model.removed": (d) => `${d.actor} hat ein Modell entfernt.`,
    "user.added": (d) => `${d.actor} hat ${d.user} zugelassen (${ROLES[d.role] ?? d.role}).`,
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
