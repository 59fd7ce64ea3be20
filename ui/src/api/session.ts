/** The current user. When the session expires, requests wait until the user has logged in again. */
import { createStore } from "../lib/store";
import type { CurrentUser, Role } from "./types";

export const session = createStore<{ me: CurrentUser | null; expired: boolean }>({
  me: null,
  expired: false,
});
let sessionCount = 0;
let resolvers: (() => void)[] = [];

/** Ask for a login; resolves when the user has logged in. */
export function waitForLogin(): Promise<void> {
  session.set((current) => ({ ...current, expired: true }));
  return new Promise((resolve) => resolvers.push(resolve));
}

/** Number of the session, to tell whether a refusal belongs to an earlier session. */
export function sessionNumber(): number {
  return sessionCount;
}

export function startSession(me: CurrentUser): void {
  const before = session.get().me;
  if (before && before.name !== me.name) {
    // Drafts and waiting requests of one user must not continue as another user.
    clearSavedWork();
    window.location.reload();
    return;
  }
  sessionCount++;
  session.set({ me, expired: false });
  const released = resolvers;
  resolvers = [];
  for (const release of released) release();
}

export function csrfToken(): string {
  return session.get().me?.csrf ?? "";
}

const RANKS: Role[] = ["reader", "curator", "admin"];

/** Whether the user has at least this role. */
export function hasRole(me: CurrentUser | null, role: Role): boolean {
  return me !== null && RANKS.indexOf(me.role) >= RANKS.indexOf(role);
}

/** Remove the user's work from this window: box drafts, teaching, filters. */
export function clearSavedWork(): void {
  try {
    for (const key of Object.keys(window.sessionStorage)) {
      if (key.startsWith("medgrape.")) window.sessionStorage.removeItem(key);
    }
  } catch {
    // Storage is blocked, so nothing was saved.
  }
}
