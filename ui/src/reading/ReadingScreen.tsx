import { useState } from "react";
import { useLocation } from "wouter";

import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";
import { listed } from "../worklist/order";
import { createDesk, type Desk } from "../film/desk";
import { LightBox } from "./LightBox";
import type { Suggestion } from "./Try";
import { useReading } from "./useReading";

interface Props {
  film: string;
  /** The model to read with; the one in use unless told. */
  version?: string | undefined;
  suggestion?: Suggestion | null;
}

/** One film, large, with everything that can be asked and said about it. */
export function ReadingScreen({ film, version, suggestion = null }: Props) {
  const [desk] = useState(() => createDesk(film));
  return <Opened desk={desk} version={version} suggestion={suggestion} />;
}

function Opened({
  desk,
  version,
  suggestion,
}: {
  desk: Desk;
  version: string | undefined;
  suggestion: Suggestion | null;
}) {
  const words = useWords();
  const reading = useReading(desk, version);
  const order = useStore(listed);
  const [, go] = useLocation();
  const turn = (by: 1 | -1) => {
    const next = order[order.indexOf(desk.film) + by];
    if (next && order.includes(desk.film)) go(`/films/${next}`);
  };
  if (reading.error && !reading.study) {
    return (
      <div className="lonely">
        <Trouble error={reading.error} again={reading.again} />
        <a href="#/films">{words.common.toFilms}</a>
      </div>
    );
  }
  if (!reading.film) return <p className="quiet lonely">{words.reading.opening}</p>;
  return (
    <LightBox
      desk={desk}
      reading={reading}
      film={reading.film}
      version={version}
      suggestion={suggestion}
      turn={turn}
    />
  );
}
