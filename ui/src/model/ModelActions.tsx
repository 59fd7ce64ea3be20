import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { client, told } from "../api/client";
import { may, session } from "../api/session";
import type { Model } from "../api/types";
import { Confirm } from "../parts/Confirm";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";

interface Props {
  model: Model;
  /** Called once the model is gone. */
  onRemoved?: () => void;
}

/** Put a model to use, or remove it again: for curators. */
export function ModelActions({ model, onRemoved }: Props) {
  const words = useWords().model;
  const { me } = useStore(session);
  const queries = useQueryClient();
  const [asking, setAsking] = useState(false);
  const path = { model: model.version };
  const use = useMutation({
    mutationFn: () => told(client.POST("/api/v1/models/{model}/use", { params: { path } })),
    // What the list of films tells is what the model in use sees.
    onSuccess: () => queries.invalidateQueries(),
  });
  if (!may(me, "curator") || model.in_use) return null;
  return (
    <span className="row model-actions">
      <button
        type="button"
        aria-label={`${words.use}: ${model.name}`}
        disabled={use.isPending}
        onClick={() => use.mutate()}
      >
        {use.isPending ? words.putting : words.use}
      </button>
      {model.made_here && (
        <button type="button" aria-label={`${words.remove} ${model.name}`} onClick={() => setAsking(true)}>
          {words.remove}
        </button>
      )}
      {use.isError && <Trouble error={use.error} />}
      {asking && <Removal model={model} onClose={() => setAsking(false)} onRemoved={onRemoved} />}
    </span>
  );
}

interface RemovalProps {
  model: Model;
  onClose: () => void;
  onRemoved: (() => void) | undefined;
}

function Removal({ model, onClose, onRemoved }: RemovalProps) {
  const { model: words } = useWords();
  const queries = useQueryClient();
  const removal = useMutation({
    mutationFn: () =>
      told(client.DELETE("/api/v1/models/{model}", { params: { path: { model: model.version } } })),
    onSuccess: async () => {
      onClose();
      // Leave first: asking again for what is gone would only tell that it is gone.
      onRemoved?.();
      await queries.invalidateQueries({ queryKey: ["models"] });
    },
  });
  return (
    <Confirm
      title={words.removeTitle}
      doing={words.remove}
      pending={removal.isPending}
      error={removal.error}
      onDo={() => removal.mutate()}
      onClose={onClose}
    >
      <p>
        <strong>{model.name}</strong>
      </p>
      <p>{words.removeText}</p>
    </Confirm>
  );
}
