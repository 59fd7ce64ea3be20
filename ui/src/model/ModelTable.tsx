import { useLocation } from "wouter";

import type { Model } from "../api/types";
import { useWords } from "../i18n/words";
import { formatDate } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { ModelActions } from "./ModelActions";

/** All models on the server. */
export function ModelTable({ models, shown: shownVersion }: { models: Model[]; shown: string | undefined }) {
  const words = useWords().model;
  const { language } = useStore(settings);
  const [, navigate] = useLocation();
  return (
    <section className="card stack" aria-labelledby="all-title">
      <h2 id="all-title">{words.all}</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">{words.name}</th>
            <th scope="col">{words.what}</th>
            <th scope="col">{words.added}</th>
            <th scope="col">{words.state}</th>
            <th scope="col">
              <span className="visually-hidden">{words.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {models.map((model) => (
            <tr key={model.version}>
              <th scope="row" className="named">
                <a
                  href={`#/model/${model.version}`}
                  aria-current={model.version === shownVersion ? "true" : undefined}
                >
                  {model.name}
                </a>
              </th>
              <td lang="en">{model.what}</td>
              <td>{words.addedBy(formatDate(model.added_at, language), model.added_by)}</td>
              <td>
                <span className={model.in_use ? "badge good" : "badge"}>
                  {model.in_use ? words.inUse : model.made_here ? words.madeHere : words.given}
                </span>
              </td>
              <td>
                <ModelActions
                  model={model}
                  onRemoved={() => model.version === shownVersion && navigate("/model")}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
