import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";

import { modelQuery, modelsQuery } from "../api/sharedQueries";
import type { Model, ModelCard } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { ModelSelect } from "../components/ModelSelect";
import { useWords } from "../i18n/words";
import { ConceptTable } from "./ConceptTable";
import { Evaluation } from "./Evaluation";
import { MeasurementCard } from "./MeasurementCard";
import { ModelActions } from "./ModelActions";
import { ModelArchitecture, ModelOrigin } from "./ModelDescription";
import { ModelTable } from "./ModelTable";
import { SafetyThresholds } from "./SafetyThresholds";
import { TrainingSummary } from "./TrainingSummary";

/** Everything about one model; the model in use by default. */
export function ModelScreen({ model }: { model?: string | undefined }) {
  const words = useWords().model;
  const models = useQuery(modelsQuery);
  if (models.isError) return <ScreenError error={models.error} again={() => void models.refetch()} />;
  if (models.isPending) return <Loading />;
  const version = model ?? (models.data.find((model) => model.in_use) ?? models.data[0])?.version;
  if (version === undefined) return <p className="centred">{words.noModel}</p>;
  return (
    <div className="screen model-screen">
      <ModelDetails version={version} models={models.data} />
      <ModelTable models={models.data} shown={version} />
    </div>
  );
}

function ModelDetails({ version, models }: { version: string; models: Model[] }) {
  const card = useQuery(modelQuery(version));
  if (card.isError) return <ErrorMessage error={card.error} onRetry={() => void card.refetch()} />;
  if (card.isPending) return <Loading />;
  return <Card key={version} card={card.data} models={models} />;
}

function Loading() {
  return <p className="muted centred">{useWords().common.loading}</p>;
}

function ScreenError({ error, again }: { error: unknown; again: () => void }) {
  return (
    <div className="screen">
      <ErrorMessage error={error} onRetry={again} />
    </div>
  );
}

function Card({ card, models }: { card: ModelCard; models: Model[] }) {
  const words = useWords().model;
  const [, navigate] = useLocation();
  return (
    <>
      <header className="screen-head">
        <h1>{card.name}</h1>
        <span className={card.in_use ? "badge good" : "badge"}>
          {card.in_use ? words.inUse : originText(card, words)}
        </span>
        <span className="grow" />
        <a href={`#/atlas/${card.version}`}>{words.toAtlas}</a>
        <ModelActions model={card} onRemoved={() => navigate("/model")} />
        <label className="field inline">
          <span>{words.choose}</span>
          <ModelSelect
            models={models}
            value={card.version}
            onChoose={(version) => navigate(`/model/${version}`)}
          />
        </label>
      </header>
      <div className="cards">
        <section className="card limits stack" aria-labelledby="limits-title">
          <h2 id="limits-title">{words.limits}</h2>
          <ul className="bullets">
            {words.limitsList.map((limit) => (
              <li key={limit}>{limit}</li>
            ))}
          </ul>
        </section>
        <ModelOrigin card={card} models={models} />
        <MeasurementCard model={card.version} />
        <ModelArchitecture card={card} />
        <ConceptTable model={card.version} />
        <SafetyThresholds card={card} />
        <TrainingSummary card={card} />
      </div>
      <Evaluation model={card.version} />
    </>
  );
}

function originText(card: ModelCard, words: { madeHere: string; given: string }): string {
  return card.made_here ? words.madeHere : words.given;
}
