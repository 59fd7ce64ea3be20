import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";

import { Problem } from "../api/problems";
import type { Film } from "../api/types";
import { Dialog } from "../components/Dialog";
import { errorText } from "../components/ErrorMessage";
import { FilmView } from "../film/FilmView";
import type { Size } from "../film/panZoom";
import type { ViewerState } from "../film/viewerState";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { BoxCard } from "./BoxCard";
import { MapLegend } from "./MapLegend";
import { MismatchDialog } from "./MismatchDialog";
import { ReadingContext, useReadingContext } from "./ReadingContext";
import { SidePanel } from "./SidePanel";
import { type Suggestion, SuggestionCard } from "./SuggestionCard";
import { Toolbar } from "./Toolbar";
import { useFilmControls, useMapAddress, useReadingScreen } from "./useReadingScreen";
import type { StudyData } from "./useStudyData";
import { useStyledBoxes } from "./useStyledBoxes";

interface Props {
  viewer: ViewerState;
  studyData: StudyData;
  film: Film;
  version: string | undefined;
  suggestion: Suggestion | null;
  goToFilm: (by: 1 | -1) => void;
}

/** The film on the left, everything about it on the right. */
export function ReadingLayout({ viewer, studyData, film, version, suggestion, goToFilm }: Props) {
  const words = useWords().reading;
  const [, navigate] = useLocation();
  const [suggestionClosed, setSuggestionClosed] = useState(false);
  const { size } = film.facts;
  const { context, mismatchDialog, stepError, clearStepError } = useReadingScreen(viewer, studyData, version);
  const { filmArea, zoom, addExample, openTeaching, shortcutsOpen, openShortcuts, closeShortcuts } =
    useFilmControls(context, size, goToFilm);
  const openSuggestion =
    suggestion && !suggestionClosed && studyData.study?.revision === 0 ? suggestion : null;
  const styledBoxes = useStyledBoxes(context, openSuggestion);
  const mapAddress = useMapAddress(context);
  return (
    <ReadingContext.Provider value={context}>
      <div className="reading">
        <div className="film-side">
          <Toolbar zoom={zoom} size={size} onHelp={openShortcuts} />
          <div className="film-area" ref={filmArea}>
            <FilmView
              viewer={viewer}
              size={size}
              mapAddress={mapAddress}
              label={words.filmView}
              onDraw={context.actions.drawBox}
              onPick={context.actions.selectBoxAt}
              {...styledBoxes}
            />
            <CornerCards viewer={viewer} size={size}>
              {openSuggestion && (
                <SuggestionCard suggestion={openSuggestion} onDone={() => setSuggestionClosed(true)} />
              )}
              <HistoryNotice />
              <StepError error={stepError} onClose={clearStepError} />
              <BoxCard onExample={addExample} />
            </CornerCards>
          </div>
          <MapLegend mapAddress={mapAddress} />
        </div>
        <SidePanel
          film={film}
          goToFilm={goToFilm}
          onTeach={openTeaching}
          onKept={(model) => navigate(`/films/${viewer.film}/${model}`)}
        />
      </div>
      {shortcutsOpen && <ShortcutsDialog onClose={closeShortcuts} />}
      {mismatchDialog && <MismatchDialog {...mismatchDialog} />}
    </ReadingContext.Provider>
  );
}

/** Cards over a corner of the film, on the side where the current box is not. */
function CornerCards({ viewer, size, children }: { viewer: ViewerState; size: Size; children: ReactNode }) {
  const box = useStore(viewer.draft)?.box;
  const isBoxOnRight = box !== undefined && box.x1 + box.x2 > size.width;
  return <div className={isBoxOnRight ? "corner left" : "corner"}>{children}</div>;
}

function HistoryNotice() {
  const words = useWords().reading;
  const { viewer, studyData } = useReadingContext();
  const step = useStore(viewer.historyStep);
  if (step === null) return null;
  return (
    <div className="history-notice" role="status">
      {step === 0 ? words.beforeCorrections : words.viewingStep(step, studyData.study?.revision ?? 0)}
      <button type="button" onClick={() => viewer.historyStep.set(null)}>
        {words.backToCurrentState}
      </button>
    </div>
  );
}

/** Why a step was not taken. A mismatch has a dialog of its own. */
function StepError({ error, onClose }: { error: Error | null; onClose: () => void }) {
  const words = useWords();
  if (!error || (error instanceof Problem && error.code === "concept_mismatch")) return null;
  const isStale = error instanceof Problem && error.code === "stale_study";
  return (
    <div className="error-message solid" role="alert">
      <p>{isStale ? words.reading.staleStudy : errorText(error, words)}</p>
      <button type="button" onClick={onClose}>
        {words.common.close}
      </button>
    </div>
  );
}

function ShortcutsDialog({ onClose }: { onClose: () => void }) {
  const words = useWords().reading;
  const { keys } = useStore(settings);
  return (
    <Dialog title={words.shortcutsTitle} onClose={onClose} wide>
      {!keys && <p className="verdict warned">{words.shortcutsOff}</p>}
      <dl className="keys">
        {words.shortcutList.map(([key, action]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{action}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
