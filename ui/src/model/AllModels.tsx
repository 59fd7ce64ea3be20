import { useLocation } from "wouter";

import type { Model } from "../api/types";
import { moment } from "../parts/format";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { ModelActions } from "./ModelActions";

/** Every model that the server knows. */
export function AllModels({ models, shown }: { models: Model[]; shown: string | undefined }) {
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
              <span className="hidden">{words.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {models.map((one) => (
            <tr key={one.version}>
              <th scope="row" className="named">
                <a href={`#/model/${one.version}`} aria-current={one.version === shown ? "true" : undefined}>
                  {one.name}
                </a>
              </th>
              <td lang="en">{one.what}</td>
              <td>{words.addedBy(moment(one.added_at, language), one.added_by)}</td>
              <td>
                <span className={one.in_use ? "badge good" : "badge"}>
                  {one.in_use ? words.inUse : one.made_here ? words.madeHere : words.given}
                </span>
              </td>
              <td>
                <ModelActions model={one} onRemoved={() => one.version === shown && navigate("/model")} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
