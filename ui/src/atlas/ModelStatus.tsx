import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";

import { modelQuery } from "../api/sharedQueries";
import type { Model } from "../api/types";
import { useWords } from "../i18n/words";
import { MeasurementCard } from "../model/MeasurementCard";
import { ModelActions } from "../model/ModelActions";

interface Props {
  shownModel: Model;
  modelInUse: Model | undefined;
  concept: string | undefined;
}

/** Which model is shown, which is in use, and what the change from its parent did to the scores. */
export function ModelStatus({ shownModel, modelInUse, concept }: Props) {
  const words = useWords().atlas;
  const [, navigate] = useLocation();
  const back = shownModel.parent ?? modelInUse?.version ?? "";
  return (
    <div className="model-status">
      <InUseNotice shownModel={shownModel} modelInUse={modelInUse} />
      {shownModel.made_here && (
        <p className="muted" lang="en">
          {shownModel.what}
        </p>
      )}
      <MeasurementCard key={shownModel.version} model={shownModel.version}>
        {!shownModel.in_use && shownModel.made_here && <p>{words.madeNow}</p>}
        <CalibrationWarning model={shownModel.version} />
        <ModelActions
          model={shownModel}
          onRemoved={() => navigate(concept === undefined ? `/atlas/${back}` : `/atlas/${back}/${concept}`)}
        />
      </MeasurementCard>
    </div>
  );
}

function InUseNotice({ shownModel, modelInUse }: { shownModel: Model; modelInUse: Model | undefined }) {
  const words = useWords().atlas;
  if (shownModel.in_use) {
    return (
      <p>
        <span className="badge good">{words.inUse}</span> {words.isInUse(shownModel.name)}
      </p>
    );
  }
  return <p className="film-warning">{words.notInUse(shownModel.name, modelInUse?.name ?? "–")}</p>;
}

function CalibrationWarning({ model }: { model: string }) {
  const words = useWords().atlas;
  const card = useQuery(modelQuery(model));
  return card.data?.safety_rule.calibrated === false ? (
    <p className="film-warning">{words.calibrate}</p>
  ) : null;
}
