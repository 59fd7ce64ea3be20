import { useMutation, useQueryClient } from "@tanstack/react-query";

import { client, unwrap } from "../api/client";
import type { Film } from "../api/types";
import { ConfirmDialog } from "../components/ConfirmDialog";
import { useWords } from "../i18n/words";
import { FilmThumbnail } from "./FilmThumbnail";

/** Asks before a film is deleted. */
export function RemoveFilmDialog({ film, onClose }: { film: Film; onClose: () => void }) {
  const { worklist: words } = useWords();
  const queryClient = useQueryClient();
  const removal = useMutation({
    mutationFn: () => unwrap(client.DELETE("/api/v1/films/{film}", { params: { path: { film: film.id } } })),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ["films"] });
      onClose();
    },
  });
  const readers = [...new Set(film.readings.map((reading) => reading.reader))].join(", ");
  return (
    <ConfirmDialog
      title={words.removeTitle}
      action={removal.isPending ? words.removing : words.remove}
      pending={removal.isPending}
      error={removal.error}
      onConfirm={() => removal.mutate()}
      onClose={onClose}
    >
      <div className="remove-film">
        <FilmThumbnail film={film.id} side={120} alt={words.open(film.id)} />
        <div className="stack">
          <p>{words.removeText}</p>
          {readers !== "" && <p className="film-warning">{words.removeRead(readers)}</p>}
        </div>
      </div>
    </ConfirmDialog>
  );
}
