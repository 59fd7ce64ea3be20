import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { ErrorMessage } from "./ErrorMessage";

/** A button with a menu of download formats. An unavailable format says why. */
export function DownloadMenu<Format extends string>({
  label,
  formats,
  unavailable: unavailable = {},
  save,
}: {
  label: string;
  formats: readonly (readonly [Format, string])[];
  unavailable?: Partial<Record<Format, string>>;
  save: (way: Format) => Promise<void>;
}) {
  const [open, setOpen] = useState(false);
  const saving = useMutation({ mutationFn: save });
  return (
    <div className="menu">
      <button type="button" aria-expanded={open} disabled={saving.isPending} onClick={() => setOpen(!open)}>
        {label} <span aria-hidden="true">▾</span>
      </button>
      {open && (
        <ul>
          {formats.map(([way, words]) => (
            <li key={way}>
              <button
                type="button"
                className="plain"
                disabled={way in unavailable}
                onClick={() => {
                  setOpen(false);
                  saving.mutate(way);
                }}
              >
                {words}
                {way in unavailable && <small>{unavailable[way]}</small>}
              </button>
            </li>
          ))}
        </ul>
      )}
      {saving.isError && <ErrorMessage error={saving.error} />}
    </div>
  );
}
