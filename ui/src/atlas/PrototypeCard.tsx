import { hasRole, session } from "../api/session";
import type { Prototype } from "../api/types";
import { PatchPicture } from "../components/PatchPicture";
import { useWords } from "../i18n/words";
import { displayName, formatNumber, formatProbability } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { patchBox, PICTURE_SIDE, type UsageCounts } from "./prototypeOrder";

interface Props {
  model: string;
  prototype: Prototype;
  usage: UsageCounts | null;
  isSelected: boolean;
  onSelect: () => void;
  onOpen: () => void;
}

/** Card of one prototype: its training film and its effect. */
export function PrototypeCard({ model, prototype, usage, isSelected, onSelect, onOpen }: Props) {
  const words = useWords().atlas;
  const { me } = useStore(session);
  const { number, kept, exemplar, film } = prototype;
  return (
    <li className={`prototype${kept ? "" : " discarded"}${isSelected ? " chosen" : ""}`}>
      <div className="prototype-head">
        {hasRole(me, "curator") ? (
          <label className="checkbox">
            <input
              type="checkbox"
              checked={isSelected}
              onChange={onSelect}
              aria-label={words.select(number)}
            />
            <strong>{number}</strong>
          </label>
        ) : (
          <strong>{number}</strong>
        )}
        {!kept && <span className="badge warn">{words.discarded}</span>}
      </div>
      {exemplar === null ? (
        <p className="no-training-film muted small">{words.noFilm}</p>
      ) : (
        <button
          type="button"
          className="prototype-picture"
          aria-label={words.enlarge(number)}
          onClick={onOpen}
        >
          <PatchPicture
            address={`/api/v1/models/${model}/exemplars/${exemplar}.png`}
            pictureSide={PICTURE_SIDE}
            patch={patchBox(prototype)}
            showWhole
            label={words.picture(number, film ?? "")}
          />
        </button>
      )}
      <PrototypeFacts prototype={prototype} usage={usage} />
    </li>
  );
}

export function PrototypeFacts({ prototype, usage }: { prototype: Prototype; usage: UsageCounts | null }) {
  const words = useWords().atlas;
  const preferences = useStore(settings);
  const { similarity, raises, gain, kept, number } = prototype;
  const use = kept ? usage?.of(number) : undefined;
  return (
    <ul className="prototype-facts small">
      {similarity !== null && (
        <li title={words.similarityHint}>
          {words.similarity} {formatNumber(similarity, preferences.language)}
        </li>
      )}
      {kept && <li>{effect()}</li>}
      {use && usage && <li>{words.strongest(use.strongest, usage.shown)}</li>}
      {use && use.in_box !== null && <li>{words.inBox(formatProbability(use.in_box, preferences))}</li>}
    </ul>
  );

  function effect(): string {
    return raises === null || gain === null
      ? words.raisesNothing
      : words.raises(displayName(raises), points(gain));
  }

  function points(value: number): string {
    if (preferences.shares === "decimals") return formatNumber(value, preferences.language);
    return words.points(formatNumber(value * 100, preferences.language, value < 0.095 ? 1 : 0));
  }
}
