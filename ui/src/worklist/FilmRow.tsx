import { type MouseEvent } from "react";
import { useLocation } from "wouter";

import { session } from "../api/session";
import type { Film } from "../api/types";
import { moment, readable, share } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { Preview } from "./Preview";
import { likeliestOf, mayRemove } from "./queries";

/** One film. A click anywhere opens it; by keyboard and for screen readers its link does. */
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
          <Preview film={film.id} side={72} alt="" />
          <span className="hidden">{words.columns.film} </span>
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
        {moment(film.arrived_at, language)}
        <div className="quiet small">{words.by(film.arrived_by)}</div>
      </td>
      <td>
        <Readers film={film} />
      </td>
      <td className="row-actions">
        {mayRemove(me, film) && (
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
  const liking = useStore(settings);
  const found = likeliestOf(film);
  if (found === null) return <span className="quiet pending">{words.pending}</span>;
  const [name, value] = found;
  return (
    <div className="likeliest">
      <span>{readable(name)}</span>
      <span className="figure">{share(value, liking)}</span>
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
  if (view === null && patient.length === 0) return <span className="quiet">{words.nothingTold}</span>;
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
      <div className="quiet small">
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
  if (film.readings.length === 0) return <span className="quiet">{words.nobody}</span>;
  return (
    <ul>
      {film.readings.map((one) => (
        <li key={`${one.reader} ${one.model}`}>
          {one.reader}
          {one.corrections !== null && <span className="quiet small"> · {words.steps(one.corrections)}</span>}
          <div className="quiet small">{moment(one.changed_at, language)}</div>
        </li>
      ))}
    </ul>
  );
}
