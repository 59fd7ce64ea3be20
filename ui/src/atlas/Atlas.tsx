import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";

import { conceptsQuery, modelsQuery } from "../api/queries";
import type { Concept, Model } from "../api/types";
import { Trouble } from "../parts/Trouble";
import { ModelSelect } from "../parts/ModelSelect";
import { useWords } from "../words/words";
import { Prototypes } from "./Prototypes";
import { Standing } from "./Standing";

interface Props {
  model?: string | undefined;
  concept?: string | undefined;
}

/** What a model goes by: every prototype of a finding, with the training film behind it. */
export function Atlas({ model, concept }: Props) {
  const { model: words, common } = useWords();
  const models = useQuery(modelsQuery);
  if (models.isPending) return <p className="quiet lonely">{common.loading}</p>;
  if (models.isError) return <Broken error={models.error} again={() => void models.refetch()} />;
  const used = models.data.find((one) => one.in_use);
  const shown =
    model === undefined ? (used ?? models.data[0]) : models.data.find((one) => one.version === model);
  if (!shown) return <p className="lonely">{model === undefined ? words.noModel : common.nothingHere}</p>;
  return <OfModel models={models.data} shown={shown} used={used} concept={concept} />;
}

function Broken({ error, again }: { error: unknown; again: () => void }) {
  return (
    <div className="screen">
      <Trouble error={error} again={again} />
    </div>
  );
}

interface OfModelProps {
  models: Model[];
  shown: Model;
  used: Model | undefined;
  concept: string | undefined;
}

function OfModel({ models, shown, used, concept }: OfModelProps) {
  const { atlas: words, common } = useWords();
  const concepts = useQuery(conceptsQuery(shown.version));
  if (concepts.isError) return <Broken error={concepts.error} again={() => void concepts.refetch()} />;
  const known = concepts.data ?? [];
  const chosen = concept === undefined ? known[0] : known.find((one) => one.name === concept);
  return (
    <div className="screen atlas">
      <header className="screen-head">
        <h1>{words.title}</h1>
        <Choosers models={models} shown={shown} concepts={known} chosen={chosen} />
      </header>
      <p className="quiet">{words.intro}</p>
      <Standing shown={shown} used={used} concept={chosen?.name} />
      {concepts.isPending && <p className="quiet lonely">{common.loading}</p>}
      {concepts.data && !chosen && (
        <p className="lonely">{concept === undefined ? words.noConcepts : words.unknownConcept(concept)}</p>
      )}
      {chosen && <Prototypes key={`${shown.version} ${chosen.name}`} model={shown} concept={chosen} />}
    </div>
  );
}

interface ChoosersProps {
  models: Model[];
  shown: Model;
  concepts: Concept[];
  chosen: Concept | undefined;
}

function Choosers({ models, shown, concepts, chosen }: ChoosersProps) {
  const words = useWords().atlas;
  const [, navigate] = useLocation();
  return (
    <div className="row choosers">
      <label className="field">
        <span>{words.concept}</span>
        <select
          value={chosen?.name ?? ""}
          onChange={(event) => navigate(`/atlas/${shown.version}/${event.target.value}`)}
        >
          {concepts.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>{words.model}</span>
        <ModelSelect
          models={models}
          value={shown.version}
          onChoose={(version) => navigate(`/atlas/${[version, chosen?.name].filter(Boolean).join("/")}`)}
        />
      </label>
    </div>
  );
}
