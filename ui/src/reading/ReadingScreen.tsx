import { useState } from "react";
import { useLocation } from "wouter";

import { ErrorMessage } from "../components/ErrorMessage";
import { createViewerState, type ViewerState } from "../film/viewerState";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { filmOrder } from "../worklist/filters";
import { ReadingLayout } from "./ReadingLayout";
import type { Suggestion } from "./SuggestionCard";
import { useStudyData } from "./useStudyData";

interface Props {
  film: string;
  /** Version of the model to read with; the model in use by default. */
  version?: string | undefined;
  suggestion?: Suggestion | null;
}

/** Reading one film: look, check, correct. */
export function ReadingScreen({ film, version, suggestion = null }: Props) {
  const [viewer] = useState(() => createViewerState(film));
  return <OpenFilm viewer={viewer} version={version} suggestion={suggestion} />;
}

function OpenFilm({
  viewer,
  version,
  suggestion,
}: {
  viewer: ViewerState;
  version: string | undefined;
  suggestion: Suggestion | null;
}) {
  const words = useWords();
  const reading = useStudyData(viewer, version);
  const order = useStore(filmOrder);
  const [, go] = useLocation();
  const goToFilm = (by: 1 | -1) => {
    const next = order[order.indexOf(viewer.film) + by];
    if (next && order.includes(viewer.film)) go(`/films/${next}`);
  };
  if (reading.error && !reading.study) {
    return (
      <div className="centred">
        <ErrorMessage error={reading.error} onRetry={reading.retry} />
        <a href="#/films">{words.common.toFilms}</a>
      </div>
    );
  }
  if (!reading.film) return <p className="muted centred">{words.reading.opening}</p>;
  return (
    <ReadingLayout
      viewer={viewer}
      studyData={reading}
      film={reading.film}
      version={version}
      suggestion={suggestion}
      goToFilm={goToFilm}
    />
  );
}
