import type { Model, ModelCard } from "../api/types";
import { moment } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { textAt } from "./metrics";

/** How a model came about. */
export function About({ card, models }: { card: ModelCard; models: Model[] }) {
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
        <dd>{words.addedBy(moment(card.added_at, language), card.added_by)}</dd>
        {card.parent && (
          <>
            <dt>{words.parent}</dt>
            <dd>
              <Parent version={card.parent} models={models} />
            </dd>
          </>
        )}
        <dt>{words.trainedOn}</dt>
        <dd>{textAt(card.data_set, "name") ?? words.noneTold}</dd>
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
            {card.changes.map((change, place) => (
              <li key={place}>{change}</li>
            ))}
          </ol>
        </dd>
      </dl>
    </section>
  );
}

function Parent({ version, models }: { version: string; models: Model[] }) {
  const words = useWords().model;
  const parent = models.find((one) => one.version === version);
  return parent ? <a href={`#/model/${version}`}>{parent.name}</a> : words.parentGone;
}
