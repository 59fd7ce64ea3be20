/** Who sits at the page. A session that ends meanwhile is renewed by logging in again; whatever asked, waits. */
import { createStore } from "../parts/store";
import type { components } from "./schema";

export type Me = components["schemas"]["SessionTold"];
export type Role = Me["role"];

export const session = createStore<{ me: Me | null; ended: boolean }>({ me: null, ended: false });
let begun = 0;
let waiting: (() => void)[] = [];

/** Resolves as soon as somebody is logged in. */
export function loggedIn(): Promise<void> {
  session.set((now) => ({ ...now, ended: true }));
  return new Promise((resolve) => waiting.push(resolve));
}

/** Counts sessions, so that a late refusal of an earlier one is told from one of this. */
export function sessionNumber(): number {
  return begun;
}

export function begin(me: Me): void {
  const before = session.get().me;
  if (before && before.name !== me.name) {
    // What one person drew, and what waits, is not done in another's name.
    forgetWork();
    window.location.reload();
    return;
  }
  begun++;
  session.set({ me, ended: false });
  const released = waiting;
  waiting = [];
  for (const release of released) release();
}

export function csrfToken(): string {
  return session.get().me?.csrf ?? "";
}

const RANKS: Role[] = ["reader", "curator", "admin"];

/** Whether whoever sits here may do what takes `role`. */
export function may(me: Me | null, role: Role): boolean {
  return me !== null && RANKS.indexOf(me.role) >= RANKS.indexOf(role);
}

/** What was kept for this person in this window: boxes in hand, an open lesson, filters. */
export function forgetWork(): void {
  try {
    for (const key of Object.keys(window.sessionStorage)) {
      if (key.startsWith("medgrape.")) window.sessionStorage.removeItem(key);
    }
  } catch {
    // Where nothing can be kept, nothing was.
  }
}
