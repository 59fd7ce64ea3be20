import { useRef } from "react";

import { useWords } from "../i18n/words";
import { uploadQueue } from "./uploads";

const ACCEPTED_TYPES = ".png,.jpg,.jpeg,.dcm,.dicom,image/png,image/jpeg,application/dicom";

/** Opens the file chooser. It accepts all files, because DICOM files often have no extension. */
export function AddFilmsButton() {
  const words = useWords().worklist;
  const fileInput = useRef<HTMLInputElement>(null);
  return (
    <div className="add-films">
      <span className="muted small" id="add-hint">
        {words.addHint}
      </span>
      <button
        type="button"
        className="primary"
        aria-describedby="add-hint"
        onClick={() => fileInput.current?.click()}
      >
        {words.add}
      </button>
      <input
        ref={fileInput}
        className="visually-hidden"
        type="file"
        multiple
        tabIndex={-1}
        aria-hidden="true"
        accept={`${ACCEPTED_TYPES},*/*`}
        onChange={(event) => {
          uploadQueue.add([...(event.target.files ?? [])]);
          // Allow selecting the same file again.
          event.target.value = "";
        }}
      />
    </div>
  );
}
