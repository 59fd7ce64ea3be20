import type { Model, ModelCard } from "../api/types";
import { useWords } from "../i18n/words";
import { displayName, formatDate } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { textAt } from "./trainingMetrics";

/** Origin of a model: version, parent, training data, later changes. */
export function ModelOrigin({ card, models }: { card: ModelCard; models: Model[] }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const checksum = textAt(card.data_set, "checksum") ?? textAt(card.data_set, "fingerprint");
  return (
    <section className="card stack" aria-labelledby="about-title">
      <h2 id="about-title">{words.about}</h2>
      <p lang="en">{card.what}</p>
      <dl className="facts">
        <dt>{words.version}</dt>
        <dd className="code">{card.version}</dd>
        <dt>{words.fingerprint}</dt>
        <dd className="code">{card.fingerprint}</dd>
        <dt>{words.added}</dt>
        <dd>{words.addedBy(formatDate(card.added_at, language), card.added_by)}</dd>
        {card.parent && (
          <>
            <dt>{words.parent}</dt>
            <dd>
              <Parent version={card.parent} models={models} />
            </dd>
          </>
        )}
        <dt>{words.trainedOn}</dt>
        <dd>{textAt(card.data_set, "name") ?? words.notAvailable}</dd>
        {checksum && (
          <>
            <dt>{words.dataChecksum}</dt>
            <dd className="code">{checksum.slice(0, 16)}</dd>
          </>
        )}
        <dt>{words.changes}</dt>
        <dd>
          {card.changes.length === 0 && words.noChanges}
          <ol className="numbered" lang="en">
            {card.changes.map((change, index) => (
              <li key={index}>{change}</li>
            ))}
          </ol>
        </dd>
      </dl>
    </section>
  );
}

function Parent({ version, models }: { version: string; models: Model[] }) {
  const words = useWords().model;
  const parent = models.find((model) => model.version === version);
  return parent ? <a href={`#/model/${version}`}>{parent.name}</a> : words.parentGone;
}

/** Architecture of a model: classes, prototypes, input, backbone, head. */
export function ModelArchitecture({ card }: { card: ModelCard }) {
  const words = useWords().model;
  const [rows, columns] = card.grid;
  return (
    <section className="card stack" aria-labelledby="build-title">
      <h2 id="build-title">{words.build}</h2>
      <dl className="facts">
        <dt>{words.classes}</dt>
        <dd>{card.classes.map(displayName).join(", ")}</dd>
        <dt>{words.prototypes}</dt>
        <dd>{words.prototypeCount(card.concepts, card.prototypes)}</dd>
        <dt>{words.input}</dt>
        <dd>{words.inputSize(card.input_size, rows, columns)}</dd>
        <dt>{words.backbone}</dt>
        <dd>{card.backbone}</dd>
        <dt>{words.head}</dt>
        <dd>{words.heads[card.head] ?? card.head}</dd>
        <dt>{words.textEncoder}</dt>
        <dd lang="en">{textAt(card.metrics, "text_encoder") ?? words.notAvailable}</dd>
      </dl>
    </section>
  );
}
