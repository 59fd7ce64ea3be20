import { Component, type ReactNode } from "react";

import { settings } from "../settings/settings";
import { WORDS } from "../words/words";

/** The last resort: a fault of the page itself, told instead of an empty screen. */
export class Broken extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }

  override render(): ReactNode {
    if (!this.state.broken) return this.props.children;
    const words = WORDS[settings.get().language].common;
    return (
      <main className="lonely" role="alert">
        <p>{words.broken}</p>
        <button type="button" onClick={() => window.location.reload()}>
          {words.reload}
        </button>
      </main>
    );
  }
}
