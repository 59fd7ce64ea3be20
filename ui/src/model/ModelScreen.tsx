import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";

import { modelQuery, modelsQuery } from "../api/queries";
import type { Model, ModelCard } from "../api/types";
import { Trouble } from "../parts/Trouble";
import { ModelSelect } from "../parts/ModelSelect";
import { useWords } from "../words/words";
import { About } from "./About";
import { AllModels } from "./AllModels";
import { Build } from "./Build";
import { Concepts } from "./Concepts";
import { Evaluated } from "./Evaluated";
import { ModelActions } from "./ModelActions";
import { Safety } from "./Safety";
import { Training } from "./Training";
import { Worth } from "./Worth";

/** All there is to say about a model: the one in use unless told. */
export function ModelScreen({ model }: { model?: string | undefined }) {
  const words = useWords().model;
  const models = useQuery(modelsQuery);
  if (models.isError) return <Lonely error={models.error} again={() => void models.refetch()} />;
  if (models.isPending) return <Waiting />;
  const version = model ?? (models.data.find((one) => one.in_use) ?? models.data[0])?.version;
  if (version === undefined) return <p className="lonely">{words.noModel}</p>;
  return (
    <div className="screen model-screen">
      <Chosen version={version} models={models.data} />
      <AllModels models={models.data} shown={version} />
    </div>
  );
}

function Chosen({ version, models }: { version: string; models: Model[] }) {
  const card = useQuery(modelQuery(version));
  if (card.isError) return <Trouble error={card.error} again={() => void card.refetch()} />;
  if (card.isPending) return <Waiting />;
  return <Card key={version} card={card.data} models={models} />;
}

function Waiting() {
  return <p className="quiet lonely">{useWords().common.loading}</p>;
}

function Lonely({ error, again }: { error: unknown; again: () => void }) {
  return (
    <div className="screen">
      <Trouble error={error} again={again} />
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
          {card.in_use ? words.inUse : stateOf(card, words)}
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
            {words.limitsTold.map((told) => (
              <li key={told}>{told}</li>
            ))}
          </ul>
        </section>
        <About card={card} models={models} />
        <Worth model={card.version} />
        <Build card={card} />
        <Concepts model={card.version} />
        <Safety card={card} />
        <Training card={card} />
      </div>
      <Evaluated model={card.version} />
    </>
  );
}

function stateOf(card: ModelCard, words: { madeHere: string; given: string }): string {
  return card.made_here ? words.madeHere : words.given;
}
