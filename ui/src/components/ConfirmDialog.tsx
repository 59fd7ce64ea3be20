import { type ReactNode } from "react";

import { useWords } from "../i18n/words";
import { Dialog } from "./Dialog";
import { ErrorMessage } from "./ErrorMessage";

interface Props {
  title: string;
  children: ReactNode;
  /** Label of the confirming button. */
  action: string;
  pending: boolean;
  error: Error | null;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asks before something is deleted. The cancel button has the focus, so Enter deletes nothing. */
export function ConfirmDialog({ title, children, action, pending, error, onConfirm, onClose }: Props) {
  const words = useWords().common;
  return (
    <Dialog title={title} onClose={onClose}>
      <div className="stack">
        {children}
        {error && <ErrorMessage error={error} />}
        <div className="row end">
          <button type="button" autoFocus onClick={onClose}>
            {words.cancel}
          </button>
          <button type="button" className="danger" disabled={pending} onClick={onConfirm}>
            {action}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
