import { useMutation, useQueryClient } from "@tanstack/react-query";

import { client, told } from "../api/client";
import type { Film } from "../api/types";
import { Confirm } from "../parts/Confirm";
import { useWords } from "../words/words";
import { Preview } from "./Preview";

/** Asks once more before a film is gone for good. */
export function RemoveFilm({ film, onClose }: { film: Film; onClose: () => void }) {
  const { worklist: words } = useWords();
  const queries = useQueryClient();
  const removal = useMutation({
    mutationFn: () => told(client.DELETE("/api/v1/films/{film}", { params: { path: { film: film.id } } })),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ["films"] });
      onClose();
    },
  });
  const readers = [...new Set(film.readings.map((one) => one.reader))].join(", ");
  return (
    <Confirm
      title={words.removeTitle}
      doing={removal.isPending ? words.removing : words.remove}
      pending={removal.isPending}
      error={removal.error}
      onDo={() => removal.mutate()}
      onClose={onClose}
    >
      <div className="remove-film">
        <Preview film={film.id} side={120} alt={words.open(film.id)} />
        <div className="stack">
          <p>{words.removeText}</p>
          {readers !== "" && <p className="film-warning">{words.removeRead(readers)}</p>}
        </div>
      </div>
    </Confirm>
  );
}
