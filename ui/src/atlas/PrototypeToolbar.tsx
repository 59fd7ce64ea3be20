import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";

import { client, unwrap } from "../api/client";
import { hasRole, session } from "../api/session";
import type { Model, Prototype } from "../api/types";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { measureModel } from "../model/measurementJobs";
import type { Filter, Order } from "./prototypeOrder";

interface Props {
  model: Model;
  concept: string;
  prototypes: readonly Prototype[];
  selected: ReadonlySet<number>;
  onClearSelection: () => void;
  order: Order;
  onOrder: (order: Order) => void;
  filter: Filter;
  onFilter: (shown: Filter) => void;
  isMeasured: boolean;
}

/** Sorts and filters prototypes; curators discard or restore the selected ones. Stays visible while scrolling. */
export function PrototypeToolbar(props: Props) {
  const words = useWords().atlas;
  const { me } = useStore(session);
  const { order, onOrder, filter, onFilter, isMeasured } = props;
  return (
    <div className="prototype-toolbar" role="group" aria-label={words.tools}>
      <label className="field inline">
        <span>{words.sort}</span>
        <select value={order} onChange={(event) => onOrder(event.target.value as Order)}>
          {(Object.keys(words.sorts) as Order[]).map((option) => (
            <option key={option} value={option} disabled={option === "usage" && !isMeasured}>
              {words.sorts[option]}
            </option>
          ))}
        </select>
      </label>
      <label className="field inline">
        <span>{words.show}</span>
        <select value={filter} onChange={(event) => onFilter(event.target.value as Filter)}>
          {(Object.keys(words.shows) as Filter[]).map((option) => (
            <option key={option} value={option}>
              {words.shows[option]}
            </option>
          ))}
        </select>
      </label>
      <span className="muted small grow">{isMeasured ? words.usageHint : words.unmeasured}</span>
      {hasRole(me, "curator") ? (
        <Curation {...props} />
      ) : (
        <span className="muted small">{words.readOnly}</span>
      )}
    </div>
  );
}

function Curation({ model, concept, prototypes, selected, onClearSelection }: Props) {
  const words = useWords().atlas;
  const curation = useCuration(model, concept);
  const kept = prototypes
    .filter((prototype) => selected.has(prototype.number) && prototype.kept)
    .map((prototype) => prototype.number);
  const discarded = prototypes
    .filter((prototype) => selected.has(prototype.number) && !prototype.kept)
    .map((prototype) => prototype.number);
  const busy = curation.isPending;
  return (
    <div className="row curation">
      <span role="status">{busy ? words.curating : words.selected(selected.size)}</span>
      {selected.size > 0 && (
        <button type="button" className="plain" onClick={onClearSelection}>
          {words.selectNone}
        </button>
      )}
      <button
        type="button"
        className={kept.length > 0 ? "primary" : undefined}
        disabled={busy || kept.length === 0}
        title={words.curateHint}
        onClick={() => curation.mutate({ action: "discard", prototypes: kept })}
      >
        {words.discard(kept.length)}
      </button>
      <button
        type="button"
        disabled={busy || discarded.length === 0}
        title={words.curateHint}
        onClick={() => curation.mutate({ action: "restore", prototypes: discarded })}
      >
        {words.restore(discarded.length)}
      </button>
      {curation.isError && <ErrorMessage error={curation.error} />}
    </div>
  );
}

interface CurationRequest {
  action: "discard" | "restore";
  prototypes: number[];
}

/** Create the new model, open it, and measure it to show the effect. */
function useCuration(model: Model, concept: string) {
  const queryClient = useQueryClient();
  const [, navigate] = useLocation();
  return useMutation({
    mutationFn: ({ action, prototypes }: CurationRequest) => {
      const request = { params: { path: { model: model.version, concept } }, body: { prototypes } };
      return unwrap(
        action === "discard"
          ? client.POST("/api/v1/models/{model}/concepts/{concept}/discard", request)
          : client.POST("/api/v1/models/{model}/concepts/{concept}/restore", request),
      );
    },
    onSuccess: async (made) => {
      await queryClient.invalidateQueries({ queryKey: ["models"] });
      void measureModel(made.version);
      navigate(`/atlas/${made.version}/${concept}`);
      document.getElementById("content")?.scrollTo({ top: 0 });
    },
  });
}
