import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { client, unwrap } from "../api/client";
import { hasRole, session } from "../api/session";
import type { Model } from "../api/types";
import { ConfirmDialog } from "../components/ConfirmDialog";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";

interface Props {
  model: Model;
  /** Called after the model was removed. */
  onRemoved?: () => void;
}

/** Buttons to put a model to use or to remove it. Curators only. */
export function ModelActions({ model, onRemoved }: Props) {
  const words = useWords().model;
  const { me } = useStore(session);
  const queryClient = useQueryClient();
  const [asking, setAsking] = useState(false);
  const path = { model: model.version };
  const use = useMutation({
    mutationFn: () => unwrap(client.POST("/api/v1/models/{model}/use", { params: { path } })),
    // The film list shows predictions of the model in use, so everything is fetched again.
    onSuccess: () => queryClient.invalidateQueries(),
  });
  if (!hasRole(me, "curator") || model.in_use) return null;
  return (
    <span className="row model-actions">
      <button
        type="button"
        aria-label={`${words.use}: ${model.name}`}
        disabled={use.isPending}
        onClick={() => use.mutate()}
      >
        {use.isPending ? words.switching : words.use}
      </button>
      {model.made_here && (
        <button type="button" aria-label={`${words.remove} ${model.name}`} onClick={() => setAsking(true)}>
          {words.remove}
        </button>
      )}
      {use.isError && <ErrorMessage error={use.error} />}
      {asking && <RemoveModelDialog model={model} onClose={() => setAsking(false)} onRemoved={onRemoved} />}
    </span>
  );
}

interface RemovalProps {
  model: Model;
  onClose: () => void;
  onRemoved: (() => void) | undefined;
}

function RemoveModelDialog({ model, onClose, onRemoved }: RemovalProps) {
  const { model: words } = useWords();
  const queryClient = useQueryClient();
  const removal = useMutation({
    mutationFn: () =>
      unwrap(client.DELETE("/api/v1/models/{model}", { params: { path: { model: model.version } } })),
    onSuccess: async () => {
      onClose();
      // Leave the page of the removed model first; a refetch of it would fail with 404.
      onRemoved?.();
      await queryClient.invalidateQueries({ queryKey: ["models"] });
    },
  });
  return (
    <ConfirmDialog
      title={words.removeTitle}
      action={words.remove}
      pending={removal.isPending}
      error={removal.error}
      onConfirm={() => removal.mutate()}
      onClose={onClose}
    >
      <p>
        <strong>{model.name}</strong>
      </p>
      <p>{words.removeText}</p>
    </ConfirmDialog>
  );
}
