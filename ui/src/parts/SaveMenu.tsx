import { useMutation } from "@tanstack/react-query";
import { useState } from "react";

import { Trouble } from "./Trouble";

/** A button that opens into several ways to save the same thing. */
export function SaveMenu<Way extends string>({
  label,
  ways,
  save,
}: {
  label: string;
  ways: readonly (readonly [Way, string])[];
  save: (way: Way) => Promise<void>;
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
          {ways.map(([way, words]) => (
            <li key={way}>
              <button
                type="button"
                className="plain"
                onClick={() => {
                  setOpen(false);
                  saving.mutate(way);
                }}
              >
                {words}
              </button>
            </li>
          ))}
        </ul>
      )}
      {saving.isError && <Trouble error={saving.error} />}
    </div>
  );
}
