import type { Prototype } from "../api/types";
import { Dialog } from "../parts/Dialog";
import { figure } from "../parts/format";
import { PatchPicture } from "../parts/PatchPicture";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { patchOf, SIDE, type Usage } from "./arranging";
import { PrototypeFacts } from "./PrototypeCard";

interface Props {
  model: string;
  prototype: Prototype;
  usage: Usage | null;
  onClose: () => void;
}

/** The whole training film behind a prototype, large. */
export function PrototypeFilm({ model, prototype, usage, onClose }: Props) {
  const words = useWords().atlas;
  const { language } = useStore(settings);
  const { number, film, exemplar, patch, absent, typical } = prototype;
  return (
    <Dialog title={words.filmTitle(number)} onClose={onClose} wide>
      <div className="prototype-film">
        <PatchPicture
          address={`/api/v1/models/${model}/exemplars/${exemplar ?? 0}.png`}
          side={SIDE}
          patch={patchOf(prototype)}
          whole
          label={words.picture(number, film ?? "")}
        />
        <div className="stack">
          <dl className="facts">
            <dt>{words.film}</dt>
            <dd className="code">{film}</dd>
            {patch && (
              <>
                <dt>{words.patch}</dt>
                <dd>{words.patchTold(patch[0] + 1, patch[1] + 1)}</dd>
              </>
            )}
            <dt>{words.absent}</dt>
            <dd>{figure(absent, language)}</dd>
            <dt>{words.typical}</dt>
            <dd>{figure(typical, language)}</dd>
          </dl>
          <PrototypeFacts prototype={prototype} usage={usage} />
        </div>
      </div>
    </Dialog>
  );
}
