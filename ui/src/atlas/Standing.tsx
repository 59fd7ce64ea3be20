import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";

import { modelQuery } from "../api/queries";
import type { Model } from "../api/types";
import { ModelActions } from "../model/ModelActions";
import { Worth } from "../model/Worth";
import { useWords } from "../words/words";

interface Props {
  shown: Model;
  used: Model | undefined;
  concept: string | undefined;
}

/** Which model is in use, which one is looked at, and what the change from its parent did. */
export function Standing({ shown, used, concept }: Props) {
  const words = useWords().atlas;
  const [, navigate] = useLocation();
  const back = shown.parent ?? used?.version ?? "";
  return (
    <div className="standing">
      <InUse shown={shown} used={used} />
      {shown.made_here && (
        <p className="quiet" lang="en">
          {shown.what}
        </p>
      )}
      <Worth key={shown.version} model={shown.version}>
        {!shown.in_use && shown.made_here && <p>{words.madeNow}</p>}
        <Calibration model={shown.version} />
        <ModelActions
          model={shown}
          onRemoved={() => navigate(concept === undefined ? `/atlas/${back}` : `/atlas/${back}/${concept}`)}
        />
      </Worth>
    </div>
  );
}

function InUse({ shown, used }: { shown: Model; used: Model | undefined }) {
  const words = useWords().atlas;
  if (shown.in_use) {
    return (
      <p>
        <span className="badge good">{words.inUse}</span> {words.isInUse(shown.name)}
      </p>
    );
  }
  return <p className="film-warning">{words.notInUse(shown.name, used?.name ?? "–")}</p>;
}

function Calibration({ model }: { model: string }) {
  const words = useWords().atlas;
  const card = useQuery(modelQuery(model));
  return card.data?.safety_rule.calibrated === false ? (
    <p className="film-warning">{words.calibrate}</p>
  ) : null;
}
