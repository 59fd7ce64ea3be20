import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";

import type { Film } from "../api/types";
import { FilmView } from "../film/FilmView";
import type { Size } from "../film/view";
import { useStore } from "../parts/store";
import { useWords } from "../words/words";
import type { Desk } from "../film/desk";
import { DoubtDialog } from "./DoubtDialog";
import { EditCard } from "./EditCard";
import { KeysDialog } from "./KeysDialog";
import { MapLegend } from "./MapLegend";
import { SidePanel } from "./SidePanel";
import { SittingContext, useSitting } from "./sitting";
import { StepTrouble } from "./StepTrouble";
import { Toolbar } from "./Toolbar";
import { type Suggestion, Try } from "./Try";
import { useDressed } from "./useDressed";
import { useFilmRoom, useMap, useSittingAt } from "./useLightBox";
import type { Reading } from "./useReading";

interface Props {
  desk: Desk;
  reading: Reading;
  film: Film;
  version: string | undefined;
  suggestion: Suggestion | null;
  turn: (by: 1 | -1) => void;
}

/** The film on the left, what is known of it on the right. */
export function LightBox({ desk, reading, film, version, suggestion, turn }: Props) {
  const words = useWords().reading;
  const [, go] = useLocation();
  const [tried, setTried] = useState(false);
  const { size } = film.facts;
  const { sitting, settling, trouble, forget } = useSittingAt(desk, reading, version);
  const { place, zoom, example, teach, keysOpen, openKeys, closeKeys } = useFilmRoom(sitting, size, turn);
  const ghost = suggestion && !tried && reading.study?.revision === 0 ? suggestion : null;
  const dressed = useDressed(sitting, ghost);
  const map = useMap(sitting);
  const drawn = {
    desk,
    size,
    map,
    label: words.filmView,
    onDraw: sitting.acts.draw,
    onPick: sitting.acts.pick,
  };
  return (
    <SittingContext.Provider value={sitting}>
      <div className="reading">
        <div className="film-side">
          <Toolbar zoom={zoom} size={size} onKeys={openKeys} />
          <div className="film-place" ref={place}>
            <FilmView {...drawn} {...dressed} />
            <Corner desk={desk} size={size}>
              {ghost && <Try suggestion={ghost} onDone={() => setTried(true)} />}
              <LookingBack />
              <StepTrouble error={trouble} onClose={forget} />
              <EditCard onExample={example} />
            </Corner>
          </div>
          <MapLegend map={map} />
        </div>
        <SidePanel
          film={film}
          turn={turn}
          onTeach={teach}
          onKept={(model) => go(`/films/${desk.film}/${model}`)}
        />
      </div>
      {keysOpen && <KeysDialog onClose={closeKeys} />}
      {settling && <DoubtDialog {...settling} />}
    </SittingContext.Provider>
  );
}

/** Where the box in hand is not. */
function Corner({ desk, size, children }: { desk: Desk; size: Size; children: ReactNode }) {
  const box = useStore(desk.edit)?.box;
  const right = box !== undefined && box.x1 + box.x2 > size.width;
  return <div className={right ? "corner left" : "corner"}>{children}</div>;
}

function LookingBack() {
  const words = useWords().reading;
  const { desk, reading } = useSitting();
  const at = useStore(desk.back);
  if (at === null) return null;
  return (
    <div className="looking-back" role="status">
      {at === 0 ? words.atFirst : words.lookingBack(at, reading.study?.revision ?? 0)}
      <button type="button" onClick={() => desk.back.set(null)}>
        {words.toNow}
      </button>
    </div>
  );
}
