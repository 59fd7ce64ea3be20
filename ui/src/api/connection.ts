/** Whether the server answers. When it does not, somebody keeps knocking until it does. */
import { createStore } from "../parts/store";

export const connection = createStore<{ lost: boolean }>({ lost: false });
const KNOCK_EVERY = 1000;
let knocking: ReturnType<typeof setTimeout> | undefined;

export function noteAnswer(): void {
  if (!connection.get().lost) return;
  clearTimeout(knocking);
  knocking = undefined;
  connection.set({ lost: false });
}

export function noteSilence(): void {
  if (!connection.get().lost) connection.set({ lost: true });
  knocking ??= setTimeout(() => void knock(), KNOCK_EVERY);
}

async function knock(): Promise<void> {
  knocking = undefined;
  try {
    const answer = await fetch("/api/v1/health", { cache: "no-store" });
    if (answer.ok) noteAnswer();
    else noteSilence();
  } catch {
    noteSilence();
  }
}
