import type { Prototype } from "../api/types";
import { Dialog } from "../components/Dialog";
import { PatchPicture } from "../components/PatchPicture";
import { useWords } from "../i18n/words";
import { formatNumber } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { PrototypeFacts } from "./PrototypeCard";
import { patchBox, PICTURE_SIDE, type UsageCounts } from "./prototypeOrder";

interface Props {
  model: string;
  prototype: Prototype;
  usage: UsageCounts | null;
  onClose: () => void;
}

/** The whole training film of a prototype, enlarged. */
export function PrototypeDialog({ model, prototype, usage, onClose }: Props) {
  const words = useWords().atlas;
  const { language } = useStore(settings);
  const { number, film, exemplar, patch, absent, typical } = prototype;
  return (
    <Dialog title={words.filmTitle(number)} onClose={onClose} wide>
      <div className="prototype-dialog">
        <PatchPicture
          address={`/api/v1/models/${model}/exemplars/${exemplar ?? 0}.png`}
          pictureSide={PICTURE_SIDE}
          patch={patchBox(prototype)}
          showWhole
          label={words.picture(number, film ?? "")}
        />
        <div className="stack">
          <dl className="facts">
            <dt>{words.film}</dt>
            <dd className="code">{film}</dd>
            {patch && (
              <>
                <dt>{words.patch}</dt>
                <dd>{words.patchPosition(patch[0] + 1, patch[1] + 1)}</dd>
              </>
            )}
            <dt>{words.absent}</dt>
            <dd>{formatNumber(absent, language)}</dd>
            <dt>{words.typical}</dt>
            <dd>{formatNumber(typical, language)}</dd>
          </dl>
          <PrototypeFacts prototype={prototype} usage={usage} />
        </div>
      </div>
    </Dialog>
  );
}
