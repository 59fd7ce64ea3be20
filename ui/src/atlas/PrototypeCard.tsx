import { may, session } from "../api/session";
import type { Prototype } from "../api/types";
import { figure, readable, share } from "../parts/format";
import { PatchPicture } from "../parts/PatchPicture";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { patchOf, SIDE, type Usage } from "./arranging";

interface Props {
  model: string;
  prototype: Prototype;
  usage: Usage | null;
  chosen: boolean;
  onChoose: () => void;
  onOpen: () => void;
}

/** One prototype: the film that it reminds of, and what it does. */
export function PrototypeCard({ model, prototype, usage, chosen, onChoose, onOpen }: Props) {
  const words = useWords().atlas;
  const { me } = useStore(session);
  const { number, kept, exemplar, film } = prototype;
  return (
    <li className={`prototype${kept ? "" : " discarded"}${chosen ? " chosen" : ""}`}>
      <div className="prototype-head">
        {may(me, "curator") ? (
          <label className="tick">
            <input type="checkbox" checked={chosen} onChange={onChoose} aria-label={words.select(number)} />
            <strong>{number}</strong>
          </label>
        ) : (
          <strong>{number}</strong>
        )}
        {!kept && <span className="badge warn">{words.discarded}</span>}
      </div>
      {exemplar === null ? (
        <p className="no-film quiet small">{words.noFilm}</p>
      ) : (
        <button
          type="button"
          className="prototype-picture"
          aria-label={words.enlarge(number)}
          onClick={onOpen}
        >
          <PatchPicture
            address={`/api/v1/models/${model}/exemplars/${exemplar}.png`}
            side={SIDE}
            patch={patchOf(prototype)}
            whole
            label={words.picture(number, film ?? "")}
          />
        </button>
      )}
      <PrototypeFacts prototype={prototype} usage={usage} />
    </li>
  );
}

export function PrototypeFacts({ prototype, usage }: { prototype: Prototype; usage: Usage | null }) {
  const words = useWords().atlas;
  const liking = useStore(settings);
  const { similarity, raises, gain, kept, number } = prototype;
  const use = kept ? usage?.of(number) : undefined;
  return (
    <ul className="prototype-facts small">
      {similarity !== null && (
        <li title={words.similarityHint}>
          {words.similarity} {figure(similarity, liking.language)}
        </li>
      )}
      {kept && <li>{effect()}</li>}
      {use && usage && <li>{words.strongest(use.strongest, usage.shown)}</li>}
      {use && use.in_box !== null && <li>{words.inBox(share(use.in_box, liking))}</li>}
    </ul>
  );

  function effect(): string {
    return raises === null || gain === null
      ? words.raisesNothing
      : words.raises(readable(raises), points(gain));
  }

  function points(value: number): string {
    if (liking.shares === "decimals") return figure(value, liking.language);
    return words.points(figure(value * 100, liking.language, value < 0.095 ? 1 : 0));
  }
}
