import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";

import { client, told } from "../api/client";
import { may, session } from "../api/session";
import type { Model, Prototype } from "../api/types";
import { measure } from "../model/measuring";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";
import type { Order, Shown } from "./arranging";

interface Props {
  model: Model;
  concept: string;
  all: readonly Prototype[];
  chosen: ReadonlySet<number>;
  onNone: () => void;
  order: Order;
  onOrder: (order: Order) => void;
  shown: Shown;
  onShown: (shown: Shown) => void;
  measured: boolean;
}

/** Sorts prototypes, and makes a model without some of them. Stays in sight while one scrolls. */
export function Tools(props: Props) {
  const words = useWords().atlas;
  const { me } = useStore(session);
  const { order, onOrder, shown, onShown, measured } = props;
  return (
    <div className="tools" role="group" aria-label={words.tools}>
      <label className="field inline">
        <span>{words.sort}</span>
        <select value={order} onChange={(event) => onOrder(event.target.value as Order)}>
          {(Object.keys(words.sorts) as Order[]).map((one) => (
            <option key={one} value={one} disabled={one === "usage" && !measured}>
              {words.sorts[one]}
            </option>
          ))}
        </select>
      </label>
      <label className="field inline">
        <span>{words.show}</span>
        <select value={shown} onChange={(event) => onShown(event.target.value as Shown)}>
          {(Object.keys(words.shows) as Shown[]).map((one) => (
            <option key={one} value={one}>
              {words.shows[one]}
            </option>
          ))}
        </select>
      </label>
      <span className="quiet small grow">{measured ? words.usageHint : words.unmeasured}</span>
      {may(me, "curator") ? <Curation {...props} /> : <span className="quiet small">{words.readOnly}</span>}
    </div>
  );
}

function Curation({ model, concept, all, chosen, onNone }: Props) {
  const words = useWords().atlas;
  const curation = useCuration(model, concept);
  const kept = all.filter((one) => chosen.has(one.number) && one.kept).map((one) => one.number);
  const gone = all.filter((one) => chosen.has(one.number) && !one.kept).map((one) => one.number);
  const busy = curation.isPending;
  return (
    <div className="row curation">
      <span role="status">{busy ? words.curating : words.selected(chosen.size)}</span>
      {chosen.size > 0 && (
        <button type="button" className="plain" onClick={onNone}>
          {words.selectNone}
        </button>
      )}
      <button
        type="button"
        className={kept.length > 0 ? "primary" : undefined}
        disabled={busy || kept.length === 0}
        title={words.curateHint}
        onClick={() => curation.mutate({ how: "discard", prototypes: kept })}
      >
        {words.discard(kept.length)}
      </button>
      <button
        type="button"
        disabled={busy || gone.length === 0}
        title={words.curateHint}
        onClick={() => curation.mutate({ how: "restore", prototypes: gone })}
      >
        {words.restore(gone.length)}
      </button>
      {curation.isError && <Trouble error={curation.error} />}
    </div>
  );
}

interface Asked {
  how: "discard" | "restore";
  prototypes: number[];
}

/** Makes the new model, goes there, and has it measured: whoever curates wants to know what that did. */
function useCuration(model: Model, concept: string) {
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: ({ how, prototypes }: Asked) => {
      const asked = { params: { path: { model: model.version, concept } }, body: { prototypes } };
      return told(
        how === "discard"
          ? client.POST("/api/v1/models/{model}/concepts/{concept}/discard", asked)
          : client.POST("/api/v1/models/{model}/concepts/{concept}/restore", asked),
      );
    },
    onSuccess: async (made) => {
      await queries.invalidateQueries({ queryKey: ["models"] });
      void measure(made.version);
      navigate(`/atlas/${made.version}/${concept}`);
      document.getElementById("content")?.scrollTo({ top: 0 });
    },
  });
}
