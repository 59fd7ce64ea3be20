import { useRef } from "react";

import { useWords } from "../words/words";
import { queue } from "./uploads";

const KINDS = ".png,.jpg,.jpeg,.dcm,.dicom,image/png,image/jpeg,application/dicom";

/** A button that asks for files. DICOM files often have no ending at all, so all kinds can be chosen. */
export function AddFilms() {
  const words = useWords().worklist;
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <div className="add-films">
      <span className="quiet small" id="add-hint">
        {words.addHint}
      </span>
      <button
        type="button"
        className="primary"
        aria-describedby="add-hint"
        onClick={() => chooser.current?.click()}
      >
        {words.add}
      </button>
      <input
        ref={chooser}
        className="hidden"
        type="file"
        multiple
        tabIndex={-1}
        aria-hidden="true"
        accept={`${KINDS},*/*`}
        onChange={(event) => {
          queue.add([...(event.target.files ?? [])]);
          // The same file may be chosen once more.
          event.target.value = "";
        }}
      />
    </div>
  );
}
