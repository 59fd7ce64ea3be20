import { useQuery } from "@tanstack/react-query";
import { useLocation } from "wouter";

import { conceptsQuery, modelsQuery } from "../api/sharedQueries";
import type { Concept, Model } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { ModelSelect } from "../components/ModelSelect";
import { useWords } from "../i18n/words";
import { ModelStatus } from "./ModelStatus";
import { PrototypeList } from "./PrototypeList";

interface Props {
  model?: string | undefined;
  concept?: string | undefined;
}

/** The atlas: all prototypes of a finding, each with its training film. */
export function AtlasScreen({ model, concept }: Props) {
  const { model: words, common } = useWords();
  const models = useQuery(modelsQuery);
  if (models.isPending) return <p className="muted centred">{common.loading}</p>;
  if (models.isError) return <AtlasError error={models.error} again={() => void models.refetch()} />;
  const modelInUse = models.data.find((model) => model.in_use);
  const shownModel =
    model === undefined
      ? (modelInUse ?? models.data[0])
      : models.data.find(({ version }) => version === model);
  if (!shownModel) return <p className="centred">{model === undefined ? words.noModel : common.notFound}</p>;
  return (
    <ModelAtlas models={models.data} shownModel={shownModel} modelInUse={modelInUse} conceptName={concept} />
  );
}

function AtlasError({ error, again }: { error: unknown; again: () => void }) {
  return (
    <div className="screen">
      <ErrorMessage error={error} onRetry={again} />
    </div>
  );
}

interface ModelAtlasProps {
  models: Model[];
  shownModel: Model;
  modelInUse: Model | undefined;
  conceptName: string | undefined;
}

function ModelAtlas({ models, shownModel, modelInUse, conceptName }: ModelAtlasProps) {
  const { atlas: words, common } = useWords();
  const concepts = useQuery(conceptsQuery(shownModel.version));
  if (concepts.isError) return <AtlasError error={concepts.error} again={() => void concepts.refetch()} />;
  const known = concepts.data ?? [];
  const chosen = conceptName === undefined ? known[0] : known.find(({ name }) => name === conceptName);
  return (
    <div className="screen atlas">
      <header className="screen-head">
        <h1>{words.title}</h1>
        <AtlasSelects models={models} shownModel={shownModel} concepts={known} chosen={chosen} />
      </header>
      <p className="muted">{words.intro}</p>
      <ModelStatus shownModel={shownModel} modelInUse={modelInUse} concept={chosen?.name} />
      {concepts.isPending && <p className="muted centred">{common.loading}</p>}
      {concepts.data && !chosen && (
        <p className="centred">
          {conceptName === undefined ? words.noConcepts : words.unknownConcept(conceptName)}
        </p>
      )}
      {chosen && (
        <PrototypeList key={`${shownModel.version} ${chosen.name}`} model={shownModel} concept={chosen} />
      )}
    </div>
  );
}

interface AtlasSelectsProps {
  models: Model[];
  shownModel: Model;
  concepts: Concept[];
  chosen: Concept | undefined;
}

function AtlasSelects({ models, shownModel, concepts, chosen }: AtlasSelectsProps) {
  const words = useWords().atlas;
  const [, navigate] = useLocation();
  return (
    <div className="row atlas-selects">
      <label className="field">
        <span>{words.concept}</span>
        <select
          value={chosen?.name ?? ""}
          onChange={(event) => navigate(`/atlas/${shownModel.version}/${event.target.value}`)}
        >
          {concepts.map((concept) => (
            <option key={concept.name} value={concept.name}>
              {concept.title}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>{words.model}</span>
        <ModelSelect
          models={models}
          value={shownModel.version}
          onChoose={(version) => navigate(`/atlas/${[version, chosen?.name].filter(Boolean).join("/")}`)}
        />
      </label>
    </div>
  );
}
