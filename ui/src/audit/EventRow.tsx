import { useState } from "react";

import type { LogEvent } from "../api/types";
import { moment, readable, share } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords, type Words } from "../words/words";
import { type Deed, deedOf } from "./deeds";
import { filters } from "./filters";

export function sentenceOf(event: LogEvent, words: Words["audit"]): string {
  const deed = deedOf(event);
  return words.sentences[event.kind]?.(deed) ?? words.other(deed, event.kind);
}

/** One event: a sentence, what it was about, and on demand all that was written down. */
export function EventRow({ event }: { event: LogEvent }) {
  const words = useWords().audit;
  const { language } = useStore(settings);
  const [open, setOpen] = useState(false);
  const deed = deedOf(event);
  return (
    <li className="event">
      <span className="event-seq quiet">{event.seq}</span>
      <time className="event-at quiet" dateTime={event.at}>
        {moment(event.at, language)}
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
          {sentenceOf(event, words)}
        </p>
        <Moved deed={deed} />
        {deed.reason && <p className="quiet small">{words.reason(deed.reason)}</p>}
        <About event={event} />
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
      {open && <Raw event={event} />}
    </li>
  );
}

function Moved({ deed }: { deed: Deed }) {
  const words = useWords().audit;
  const liking = useStore(settings);
  if (!deed.before || !deed.after) return null;
  const [before, after] = [deed.before, deed.after].map(
    ([name, value]) => `${readable(name)} ${share(value, liking)}`,
  );
  return <p className="quiet small">{words.moved(before ?? "", after ?? "")}</p>;
}

function About({ event }: { event: LogEvent }) {
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
          onClick={() => filters.set((now) => ({ ...now, film }))}
        >
          {words.onlyFilm}
        </button>
      )}
      {study && (
        <button
          type="button"
          className="plain small"
          onClick={() => filters.set((now) => ({ ...now, study }))}
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

function Raw({ event }: { event: LogEvent }) {
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
