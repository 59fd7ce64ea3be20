/** From a box in which the model sees something else to what the person decides. */
import { useEffect, useState } from "react";

import { useStore } from "../parts/store";
import type { Desk } from "../film/desk";
import { answers, type LiveCheck } from "./liveCheck";
import type { StepAsked } from "./steps";
import type { Doubt } from "./useReading";

/** The doubt that is to be settled before anything is applied; a drawn box raises it as soon as the hand rests. */
export function useDoubt(desk: Desk, live: LiveCheck | null, locked: boolean) {
  const [doubt, setDoubt] = useState<Doubt | null>(null);
  const teaching = useStore(desk.teaching);
  useEffect(() => {
    if (!live || locked || teaching) return;
    let raised = "";
    return live.answer.subscribe(() => {
      const [answer, edit] = [live.answer.get(), desk.edit.get()];
      // A box that was taken away may be drawn once more, and is then doubted once more.
      if (!edit) raised = "";
      // Applying asks the server anyway; this only spares somebody who draws the way to the button.
      if (!answer?.check.mismatch || !edit?.byHand || edit.moving || !edit.positive) return;
      if (!answers(answer, edit.box, edit.concept)) return;
      const { box, concept, positive, number } = edit;
      const same = JSON.stringify([box, concept, number]);
      if (same === raised) return;
      raised = same;
      const asked = { said: { box, concept, positive }, confirmed: false, reason: null };
      setDoubt({
        check: answer.check,
        asked: number === null ? { kind: "box", ...asked } : { kind: "redraw", number, ...asked },
      });
    });
  }, [desk, live, locked, teaching]);
  return { doubt, setDoubt };
}

/** The same box for another finding, or confirmed with a reason. */
export function decided(doubt: Doubt, decision: { concept: string } | { reason: string }): StepAsked {
  const { asked } = doubt;
  return "reason" in decision
    ? { ...asked, confirmed: true, reason: decision.reason }
    : { ...asked, said: { ...asked.said, concept: decision.concept }, confirmed: false, reason: null };
}
