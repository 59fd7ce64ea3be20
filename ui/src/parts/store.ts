/** A value that parts of the page share, and that outlives all of them. */
import { useSyncExternalStore } from "react";

export interface Store<T> {
  get: () => T;
  set: (next: T | ((now: T) => T)) => void;
  subscribe: (listener: () => void) => () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set: (next) => {
      value = typeof next === "function" ? (next as (now: T) => T)(value) : next;
      for (const listener of listeners) listener();
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** For how long something is kept: until the window is closed, or in this browser for good. */
export type Area = "sessionStorage" | "localStorage";

/** A store whose value is found again after a reload. */
export function createKeptStore<T>(key: string, initial: T, area: Area): Store<T> {
  const store = createStore(read(key, initial, area));
  store.subscribe(() => {
    try {
      window[area].setItem(key, JSON.stringify(store.get()));
    } catch {
      // A browser that keeps nothing (private windows, full storage) still shows everything.
    }
  });
  return store;
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

function read<T>(key: string, initial: T, area: Area): T {
  try {
    // Even asking for it throws where a browser blocks what sites keep.
    const kept = window[area].getItem(key);
    if (kept === null) return initial;
    const found = JSON.parse(kept) as T;
    // What an older page kept may lack what a newer one knows.
    if (isRecord(initial)) return isRecord(found) ? { ...initial, ...found } : initial;
    return found;
  } catch {
    return initial;
  }
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
