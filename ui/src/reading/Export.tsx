import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { download } from "../parts/download";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";
import { useSitting } from "./sitting";

const FILES = [
  ["png", "evidence.png"],
  ["pdf", "reading.pdf"],
  ["json", "reading.json"],
  ["dcm.zip", "reading.dcm.zip"],
] as const;

/** Ways to take a reading along. DICOM is about a DICOM film, so one that came as a picture has no such reading. */
export function Export() {
  const words = useWords().reading;
  const { desk, reading } = useSitting();
  const back = useStore(desk.back);
  const [open, setOpen] = useState(false);
  const { study, film } = reading;
  const possible = (kind: string) => kind !== "dcm.zip" || film?.facts.format === "DICOM";
  const saving = useMutation({
    mutationFn: ({ kind, file }: { kind: string; file: string }) => {
      const at = back === null ? "" : `?at=${back}`;
      return download(`/api/v1/studies/${study?.id ?? ""}/${file}${at}`, `medgrape-${desk.film}.${kind}`);
    },
  });
  if (!study) return null;
  return (
    <div className="menu">
      <button type="button" aria-expanded={open} disabled={saving.isPending} onClick={() => setOpen(!open)}>
        {words.export} <span aria-hidden="true">▾</span>
      </button>
      {open && (
        <ul>
          {FILES.map(([kind, file]) => (
            <li key={kind}>
              <button
                type="button"
                className="plain"
                disabled={!possible(kind)}
                onClick={() => {
                  setOpen(false);
                  saving.mutate({ kind, file });
                }}
              >
                {words.exports[kind]}
                {!possible(kind) && <small>{words.noDicom}</small>}
              </button>
            </li>
          ))}
        </ul>
      )}
      {saving.isError && <Trouble error={saving.error} />}
    </div>
  );
}
