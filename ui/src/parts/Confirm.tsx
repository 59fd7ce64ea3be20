import { type ReactNode } from "react";

import { useWords } from "../words/words";
import { Dialog } from "./Dialog";
import { Trouble } from "./Trouble";

interface Props {
  title: string;
  children: ReactNode;
  /** What the button says that does it. */
  doing: string;
  pending: boolean;
  error: Error | null;
  onDo: () => void;
  onClose: () => void;
}

/** Asks once more before something is gone; whoever only presses Enter changes nothing. */
export function Confirm({ title, children, doing, pending, error, onDo, onClose }: Props) {
  const words = useWords().common;
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="stack">
        {children}
        {error && <Trouble error={error} />}
        <div className="row end">
          <button type="button" autoFocus onClick={onClose}>
            {words.cancel}
          </button>
          <button type="button" className="danger" disabled={pending} onClick={onDo}>
            {doing}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
