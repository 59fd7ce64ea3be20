import { useState } from "react";

import type { ConceptExplanation, Exemplar } from "../api/types";
import { Dialog } from "../components/Dialog";
import { type Patch, PatchPicture } from "../components/PatchPicture";
import { useWords } from "../i18n/words";
import { formatNumber } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";

/** Patches of training films that the finding's strongest prototypes represent. */
export function Exemplars({ seen: finding, model }: { seen: ConceptExplanation; model: string }) {
  const words = useWords().reading;
  const { language } = useStore(settings);
  const [openExemplar, setOpenExemplar] = useState<Exemplar | null>(null);
  const caption = (exemplar: Exemplar) =>
    words.exemplar(exemplar.film, formatNumber(exemplar.similarity ?? 0, language));
  return (
    <section className="block" aria-labelledby="exemplars">
      <div className="row spread">
        <h2 id="exemplars">{words.exemplarsOf(finding.title)}</h2>
        <a href={`#/atlas/${model}/${finding.name}`}>{words.openAtlas}</a>
      </div>
      {finding.exemplars.length === 0 && <p className="muted">{words.noExemplars}</p>}
      <ul className="exemplars">
        {finding.exemplars.map((exemplar) => (
          <li key={exemplar.prototype}>
            <button type="button" onClick={() => setOpenExemplar(exemplar)}>
              <PatchPicture
                address={exemplarAddress(model, exemplar)}
                pictureSide={exemplar.thumbnail_side}
                patch={patchBox(exemplar)}
                label={caption(exemplar)}
              />
              <span className="muted">{words.prototype(exemplar.prototype)}</span>
            </button>
          </li>
        ))}
      </ul>
      {openExemplar && (
        <Dialog title={caption(openExemplar)} onClose={() => setOpenExemplar(null)} wide>
          <div className="whole-film">
            <PatchPicture
              address={exemplarAddress(model, openExemplar)}
              pictureSide={openExemplar.thumbnail_side}
              patch={patchBox(openExemplar)}
              showWhole
              label={caption(openExemplar)}
            />
          </div>
        </Dialog>
      )}
    </section>
  );
}

function exemplarAddress(model: string, exemplar: Exemplar): string {
  return `/api/v1/models/${model}/exemplars/${exemplar.picture}.png`;
}

/** The server sends null for NaN; such a patch cannot be outlined. */
function patchBox({ patch: { x1, y1, x2, y2 } }: Exemplar): Patch | null {
  return x1 === null || y1 === null || x2 === null || y2 === null ? null : { x1, y1, x2, y2 };
}
