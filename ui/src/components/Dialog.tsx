import { type ReactNode, useId, useLayoutEffect, useRef } from "react";

import { useWords } from "../i18n/words";

interface Props {
  title: string;
  /** Called by Escape and by the close button. */
  onClose?: () => void;
  children: ReactNode;
  wide?: boolean;
  /** Screen readers announce it at once. */
  urgent?: boolean;
  /** Id of the element that screen readers read after the title. */
  describedBy?: string;
}

/** A modal dialog. The browser keeps the focus inside. */
export function Dialog({ title, onClose, children, wide = false, urgent = false, describedBy }: Props) {
  const words = useWords();
  const panel = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // close() before unmounting returns the focus to the element that had it.
  useLayoutEffect(() => {
    const dialog = panel.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={panel}
      className={wide ? "dialog wide" : "dialog"}
      role={urgent ? "alertdialog" : undefined}
      aria-labelledby={heading}
      aria-describedby={describedBy}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <header role="none">
        <h2 id={heading}>{title}</h2>
        {onClose && (
          <button type="button" className="plain" aria-label={words.common.close} onClick={onClose}>
            ✕
          </button>
        )}
      </header>
      {children}
    </dialog>
  );
}
