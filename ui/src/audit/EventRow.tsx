import { useState } from "react";

import type { LogEvent } from "../api/types";
import { useWords, type Words } from "../i18n/words";
import { displayName, formatDate, formatProbability } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { type EventDetails, eventDetails } from "./eventDetails";
import { logFilters } from "./filters";

export function eventSentence(event: LogEvent, words: Words["audit"]): string {
  const details = eventDetails(event);
  return words.sentences[event.kind]?.(details) ?? words.other(details, event.kind);
}

/** One event: a sentence, links to film, study and model, and the raw record on demand. */
export function EventRow({ event }: { event: LogEvent }) {
  const words = useWords().audit;
  const { language } = useStore(settings);
  const [open, setOpen] = useState(false);
  const deed = eventDetails(event);
  return (
    <li className="event">
      <span className="event-seq muted">{event.seq}</span>
      <time className="event-at muted" dateTime={event.at}>
        {formatDate(event.at, language)}
      </time>
      <div className="event-what">
        <p>
          <span
            className={
              event.kind === "study.warned" || event.kind === "login.failed" ? "badge warn" : "badge"
            }
          >
            {words.kinds[event.kind] ?? event.kind}
          </span>{" "}
          {eventSentence(event, words)}
        </p>
        <PredictionChange deed={deed} />
        {deed.reason && <p className="muted small">{words.reason(deed.reason)}</p>}
        <EventLinks event={event} />
      </div>
      <button
        type="button"
        className="plain small"
        aria-expanded={open}
        aria-label={words.detailsOf(event.seq)}
        onClick={() => setOpen(!open)}
      >
        {open ? "▾" : "▸"} {words.details}
      </button>
      {open && <RawEvent event={event} />}
    </li>
  );
}

function PredictionChange({ deed }: { deed: EventDetails }) {
  const words = useWords().audit;
  const preferences = useStore(settings);
  if (!deed.before || !deed.after) return null;
  const [before, after] = [deed.before, deed.after].map(
    ([name, value]) => `${displayName(name)} ${formatProbability(value, preferences)}`,
  );
  return <p className="muted small">{words.predictionChange(before ?? "", after ?? "")}</p>;
}

function EventLinks({ event }: { event: LogEvent }) {
  const words = useWords().audit;
  const { film, study } = event;
  const model = event.kind === "model.removed" ? null : event.model;
  if (!film && !study && !model) return null;
  return (
    <p className="event-about small">
      {film && event.kind !== "film.removed" && <a href={`#/films/${film}`}>{words.toFilm(film)}</a>}
      {film && (
        <button
          type="button"
          className="plain small"
          onClick={() => logFilters.set((current) => ({ ...current, film }))}
        >
          {words.onlyFilm}
        </button>
      )}
      {study && (
        <button
          type="button"
          className="plain small"
          onClick={() => logFilters.set((current) => ({ ...current, study }))}
        >
          {words.onlyStudy}
        </button>
      )}
      {model && (
        <a href={`#/model/${model}`}>
          {words.model} {model.slice(0, 8)}
        </a>
      )}
    </p>
  );
}

function RawEvent({ event }: { event: LogEvent }) {
  const words = useWords().audit;
  return (
    <dl className="event-raw small">
      <dt>{words.hash}</dt>
      <dd className="code">{event.hash}</dd>
      <dt>{words.previous}</dt>
      <dd className="code">{event.previous || "–"}</dd>
      <dt>{words.seal}</dt>
      <dd className="code">{event.seal}</dd>
      <dt>{words.body}</dt>
      <dd>
        <pre className="raw" tabIndex={0} aria-label={words.body}>
          {JSON.stringify(
            {
              kind: event.kind,
              at: event.at,
              film: event.film,
              study: event.study,
              model: event.model,
              body: event.body,
            },
            null,
            2,
          )}
        </pre>
      </dd>
    </dl>
  );
}
