import { type ReactNode, useId, useLayoutEffect, useRef } from "react";

import { useWords } from "../words/words";

interface Props {
  title: string;
  /** Called by Escape and by the button at the top. */
  onClose?: () => void;
  children: ReactNode;
  wide?: boolean;
  /** Told to screen readers at once, as a warning. */
  urgent?: boolean;
  /** The element whose words are read with the title. */
  describedBy?: string;
}

/** A panel that everything else waits for. The browser keeps the focus inside. */
export function Dialog({ title, onClose, children, wide = false, urgent = false, describedBy }: Props) {
  const words = useWords();
  const panel = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Closed before it leaves the page, it gives the focus back to where it was.
  useLayoutEffect(() => {
    const shown = panel.current;
    if (shown && !shown.open) shown.showModal();
    return () => shown?.close();
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
