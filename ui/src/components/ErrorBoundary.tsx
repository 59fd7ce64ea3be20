import { Component, type ReactNode } from "react";

import { WORDS } from "../i18n/words";
import { settings } from "../settings/settings";

/** Shows a message instead of an empty page after an error in the page itself. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }

  override render(): ReactNode {
    if (!this.state.broken) return this.props.children;
    const words = WORDS[settings.get().language].common;
    return (
      <main className="centred" role="alert">
        <p>{words.pageError}</p>
        <button type="button" onClick={() => window.location.reload()}>
          {words.reload}
        </button>
      </main>
    );
  }
}
