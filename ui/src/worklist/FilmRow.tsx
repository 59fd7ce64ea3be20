import { type MouseEvent } from "react";
import { useLocation } from "wouter";

import { session } from "../api/session";
import type { Film } from "../api/types";
import { useWords } from "../i18n/words";
import { displayName, formatDate, formatProbability } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { FilmThumbnail } from "./FilmThumbnail";
import { canRemove, likeliestClass } from "./queries";

/** A row of the film list. A click anywhere opens the film; keyboards and screen readers use the link. */
export function FilmRow({ film, onRemove }: { film: Film; onRemove: () => void }) {
  const words = useWords().worklist;
  const { language } = useStore(settings);
  const { me } = useStore(session);
  const [, navigate] = useLocation();
  const open = (event: MouseEvent) => {
    if ((event.target as Element).closest("a, button")) return;
    navigate(`/films/${film.id}`);
  };
  return (
    <tr onClick={open}>
      <td className="film-cell">
        <a href={`#/films/${film.id}`}>
          <FilmThumbnail film={film.id} side={72} alt="" />
          <span className="visually-hidden">{words.columns.film} </span>
          <span className="film-id">{film.id.slice(0, 8)}</span>
        </a>
      </td>
      <td>
        <Likeliest film={film} />
      </td>
      <td>
        <Facts film={film} />
      </td>
      <td>
        {formatDate(film.arrived_at, language)}
        <div className="muted small">{words.by(film.arrived_by)}</div>
      </td>
      <td>
        <Readers film={film} />
      </td>
      <td className="row-actions">
        {canRemove(me, film) && (
          <button
            type="button"
            className="plain small"
            aria-label={words.removeFilm(film.id)}
            onClick={onRemove}
          >
            {words.remove}
          </button>
        )}
      </td>
    </tr>
  );
}

function Likeliest({ film }: { film: Film }) {
  const words = useWords().worklist;
  const preferences = useStore(settings);
  const likeliest = likeliestClass(film);
  if (likeliest === null) return <span className="muted pending">{words.pending}</span>;
  const [name, value] = likeliest;
  return (
    <div className="likeliest">
      <span>{displayName(name)}</span>
      <span className="figure">{formatProbability(value, preferences)}</span>
      <div className="meter" aria-hidden="true">
        <i style={{ width: `${value * 100}%` }} />
      </div>
    </div>
  );
}

function Patient({ film }: { film: Film }) {
  const words = useWords().worklist;
  const { view } = film.facts;
  const named: Record<string, string> = words.views;
  const patient = [words.sexes[film.sex], film.age === null ? undefined : words.age(film.age)].filter(
    Boolean,
  );
  if (view === null && patient.length === 0) return <span className="muted">{words.factsUnknown}</span>;
  return (
    <>
      {view === null ? words.viewUnknown : (named[view] ?? view)}
      <span className="dot">{patient.length > 0 ? patient.join(", ") : words.patientUnknown}</span>
    </>
  );
}

function Facts({ film }: { film: Film }) {
  const { size, format, warnings } = film.facts;
  return (
    <>
      <Patient film={film} />
      <div className="muted small">
        {format} · {size.width} × {size.height}
      </div>
      {warnings.map((warning) => (
        <div key={warning} className="film-warning small" lang="en">
          <span aria-hidden="true">⚠ </span>
          {warning}
        </div>
      ))}
    </>
  );
}

function Readers({ film }: { film: Film }) {
  const words = useWords().worklist;
  const { language } = useStore(settings);
  if (film.readings.length === 0) return <span className="muted">{words.nobody}</span>;
  return (
    <ul>
      {film.readings.map((reading) => (
        <li key={`${reading.reader} ${reading.model}`}>
          {reading.reader}
          {reading.corrections !== null && (
            <span className="muted small"> · {words.steps(reading.corrections)}</span>
          )}
          <div className="muted small">{formatDate(reading.changed_at, language)}</div>
        </li>
      ))}
    </ul>
  );
}
