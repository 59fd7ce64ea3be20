/** The warning that the model sees another finding in a box, and the step that follows the person's decision. */
import { useEffect, useState } from "react";

import type { ViewerState } from "../film/viewerState";
import { useStore } from "../lib/store";
import { isResultFor, type LiveCheck } from "./liveCheck";
import type { StepRequest } from "./studySteps";
import type { MismatchWarning } from "./useStudyData";

/** Warns about a drawn box as soon as the pointer is released, before anything is applied. */
export function useMismatchWarning(viewer: ViewerState, liveCheck: LiveCheck | null, locked: boolean) {
  const [warning, setWarning] = useState<MismatchWarning | null>(null);
  const teaching = useStore(viewer.teaching);
  useEffect(() => {
    if (!liveCheck || locked || teaching) return;
    let lastWarned = "";
    return liveCheck.result.subscribe(() => {
      const [result, draft] = [liveCheck.result.get(), viewer.draft.get()];
      // A box that is discarded and drawn again is warned of again.
      if (!draft) lastWarned = "";
      // The server checks again when the box is applied; this warning only comes earlier.
      if (!result?.check.mismatch || !draft?.drawnByPointer || draft.moving || !draft.positive) return;
      if (!isResultFor(result, draft.box, draft.concept)) return;
      const { box, concept, positive, correctionIndex } = draft;
      const warningKey = JSON.stringify([box, concept, correctionIndex]);
      if (warningKey === lastWarned) return;
      lastWarned = warningKey;
      const content = { statement: { box, concept, positive }, confirmed: false, reason: null };
      setWarning({
        check: result.check,
        request:
          correctionIndex === null
            ? { kind: "box", ...content }
            : { kind: "redraw", correctionIndex, ...content },
      });
    });
  }, [viewer, liveCheck, locked, teaching]);
  return { warning, setWarning };
}

/** The same box for another finding, or confirmed with a reason. */
export function requestAfterDecision(
  { request }: MismatchWarning,
  decision: { concept: string } | { reason: string },
): StepRequest {
  if ("reason" in decision) return { ...request, confirmed: true, reason: decision.reason };
  const statement = { ...request.statement, concept: decision.concept };
  return { ...request, statement, confirmed: false, reason: null };
}
