/** Whether the server answers. If not, asks its health route until it does. */
import { createStore } from "../lib/store";

export const connection = createStore<{ lost: boolean }>({ lost: false });
const POLL_INTERVAL = 1000;
let pollTimer: ReturnType<typeof setTimeout> | undefined;

export function markReachable(): void {
  if (!connection.get().lost) return;
  clearTimeout(pollTimer);
  pollTimer = undefined;
  connection.set({ lost: false });
}

export function markUnreachable(): void {
  if (!connection.get().lost) connection.set({ lost: true });
  pollTimer ??= setTimeout(() => void pollHealth(), POLL_INTERVAL);
}

async function pollHealth(): Promise<void> {
  pollTimer = undefined;
  try {
    const response = await fetch("/api/v1/health", { cache: "no-store" });
    if (response.ok) markReachable();
    else markUnreachable();
  } catch {
    markUnreachable();
  }
}
