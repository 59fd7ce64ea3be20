import { useState } from "react";

import type { ConceptSeen, ExemplarSeen } from "../api/types";
import { Dialog } from "../parts/Dialog";
import { figure } from "../parts/format";
import { type Patch, PatchPicture } from "../parts/PatchPicture";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";

/** The patches of training films that the strongest prototypes stand for. */
export function LooksLike({ seen, model }: { seen: ConceptSeen; model: string }) {
  const words = useWords().reading;
  const { language } = useStore(settings);
  const [opened, setOpened] = useState<ExemplarSeen | null>(null);
  const told = (one: ExemplarSeen) => words.exemplar(one.film, figure(one.similarity ?? 0, language));
  return (
    <section className="block" aria-labelledby="looks-like">
      <div className="row spread">
        <h2 id="looks-like">{words.looksLikeOf(seen.title)}</h2>
        <a href={`#/atlas/${model}/${seen.name}`}>{words.openAtlas}</a>
      </div>
      {seen.exemplars.length === 0 && <p className="quiet">{words.withheld}</p>}
      <ul className="exemplars">
        {seen.exemplars.map((one) => (
          <li key={one.prototype}>
            <button type="button" onClick={() => setOpened(one)}>
              <PatchPicture
                address={pictured(model, one)}
                side={one.thumbnail_side}
                patch={patchOf(one)}
                label={told(one)}
              />
              <span className="quiet">{words.prototype(one.prototype)}</span>
            </button>
          </li>
        ))}
      </ul>
      {opened && (
        <Dialog title={told(opened)} onClose={() => setOpened(null)} wide>
          <div className="whole-film">
            <PatchPicture
              address={pictured(model, opened)}
              side={opened.thumbnail_side}
              patch={patchOf(opened)}
              whole
              label={told(opened)}
            />
          </div>
        </Dialog>
      )}
    </section>
  );
}

function pictured(model: string, one: ExemplarSeen): string {
  return `/api/v1/models/${model}/exemplars/${one.picture}.png`;
}

/** Figures that are no numbers are told as null; a patch with one of these cannot be outlined. */
function patchOf({ patch: { x1, y1, x2, y2 } }: ExemplarSeen): Patch | null {
  return x1 === null || y1 === null || x2 === null || y2 === null ? null : { x1, y1, x2, y2 };
}
