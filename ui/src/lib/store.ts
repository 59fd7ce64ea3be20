/** A small store: a value shared by components, independent of their lifetime. */
import { useSyncExternalStore } from "react";

export interface Store<T> {
  get: () => T;
  set: (next: T | ((current: T) => T)) => void;
  subscribe: (listener: () => void) => () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set: (next) => {
      value = typeof next === "function" ? (next as (current: T) => T)(value) : next;
      for (const listener of listeners) listener();
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** sessionStorage lasts until the window is closed, localStorage permanently. */
export type Area = "sessionStorage" | "localStorage";

/** A store whose value survives a reload. */
export function createKeptStore<T>(key: string, initial: T, area: Area): Store<T> {
  const store = createStore(read(key, initial, area));
  store.subscribe(() => {
    try {
      window[area].setItem(key, JSON.stringify(store.get()));
    } catch {
      // Without storage (private window, storage full) the page still works.
    }
  });
  return store;
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

function read<T>(key: string, initial: T, area: Area): T {
  try {
    // Reading `window[area]` itself throws if the browser blocks storage.
    const kept = window[area].getItem(key);
    if (kept === null) return initial;
    const stored = JSON.parse(kept) as T;
    // A value stored by an older version of the page may lack newer keys.
    if (isRecord(initial)) return isRecord(stored) ? { ...initial, ...stored } : initial;
    return stored;
  } catch {
    return initial;
  }
}

function isRecord(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
