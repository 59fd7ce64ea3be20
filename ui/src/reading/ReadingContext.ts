/** State and actions that all parts of the reading screen share: one film, read by one person with one model. */
import { createContext, useContext } from "react";

import type { Box } from "../film/box";
import type { ViewerState } from "../film/viewerState";
import type { LiveCheck } from "./liveCheck";
import type { StepRequest } from "./studySteps";
import type { StudyData } from "./useStudyData";

export interface StudyActions {
  /** Select a finding and show its map; selecting it again hides or shows the map. */
  chooseFinding: (concept: string) => void;
  /** `isNew`: start another box instead of changing the current one. */
  drawBox: (box: Box, done: boolean, isNew: boolean) => void;
  /** Add a box without a pointer. The model's check warns only when the box is applied. */
  placeBox: (box: Box) => void;
  selectBoxAt: (x: number, y: number) => void;
  selectCorrection: (correctionIndex: number) => void;
  applyDraft: () => void;
  discardDraft: () => void;
  removeBox: () => void;
  toggleRejection: (concept: string) => void;
  undo: () => void;
  redo: () => void;
  moveInHistory: (by: number) => void;
}

export interface ReadingContextValue {
  viewer: ViewerState;
  studyData: StudyData;
  actions: StudyActions;
  takeStep: (request: StepRequest) => void;
  /** A step was sent and is not answered yet. */
  saving: boolean;
  /** The step failed for a temporary reason and is being sent again. */
  retrying: boolean;
  liveCheck: LiveCheck | null;
  /** Nothing can be corrected: the study is somebody else's, or an earlier step is shown. */
  locked: boolean;
}

export const ReadingContext = createContext<ReadingContextValue | null>(null);

export function useReadingContext(): ReadingContextValue {
  const context = useContext(ReadingContext);
  if (!context) throw new Error("useReadingContext is used outside ReadingContext.");
  return context;
}
