import { act, cleanup, render, screen } from "@testing-library/react";
import { createElement } from "react";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { createKeptStore, createStore, useStore } from "./store";

describe("a store", () => {
  test("holds the value set, also when set by a function of the old value", () => {
    const store = createStore(1);
    store.set(2);
    store.set((current) => current + 5);
    expect(store.get()).toBe(7);
  });

  test("notifies its listeners until they unsubscribe", () => {
    const store = createStore(1);
    const [a, b] = [vi.fn(), vi.fn()];
    const stop = store.subscribe(a);
    store.subscribe(b);
    store.set(2);
    stop();
    store.set(3);
    expect(a).toHaveBeenCalledTimes(1);
    expect(b).toHaveBeenCalledTimes(2);
  });

  test("re-renders components that use it", () => {
    const store = createStore("a cavity");
    const Shown = () => createElement("p", { role: "status" }, useStore(store));
    render(createElement(Shown));
    act(() => store.set("an effusion"));
    expect(screen.getByRole("status").textContent).toBe("an effusion");
    cleanup();
  });
});

describe("a persistent store", () => {
  const FIRST = { language: "en", keys: true };
  const area = window.sessionStorage;
  const kept = (written: string | null) => {
    if (written !== null) area.setItem("liking", written);
    return createKeptStore("liking", FIRST, "sessionStorage");
  };
  beforeEach(() => area.clear());
  afterEach(() => vi.restoreAllMocks());

  test("starts with its initial value", () => {
    expect(kept(null).get()).toEqual(FIRST);
  });

  test("is restored after a reload", () => {
    kept(null).set({ language: "de", keys: false });
    expect(kept(null).get()).toEqual({ language: "de", keys: false });
  });

  test("merges a value stored by an older version with new defaults", () => {
    expect(kept(`{"language":"de"}`).get()).toEqual({ language: "de", keys: true });
  });

  test.each([`{"language":`, "", "null", "7", `"de"`, "[1]"])(
    "starts with its initial value if something else is stored: %s",
    (written) => {
      expect(kept(written).get()).toEqual(FIRST);
    },
  );

  test("may hold null and restores it", () => {
    const store = createKeptStore<{ box: number } | null>("box", null, "sessionStorage");
    expect(store.get()).toBeNull();
    store.set({ box: 1 });
    expect(createKeptStore<{ box: number } | null>("box", null, "sessionStorage").get()).toEqual({ box: 1 });
    store.set(null);
    expect(createKeptStore<{ box: number } | null>("box", null, "sessionStorage").get()).toBeNull();
  });

  test.each([
    ["that neither gives nor takes", () => ({ getItem: refuse, setItem: refuse }) as unknown as Storage],
    ["that does not even let one ask", refuse],
  ])("works in a browser %s", (_, given) => {
    vi.spyOn(window, "sessionStorage", "get").mockImplementation(given);
    const store = createKeptStore("liking", FIRST, "sessionStorage");
    expect(store.get()).toEqual(FIRST);
    const heard = vi.fn();
    store.subscribe(heard);
    store.set({ ...FIRST, keys: false });
    expect(store.get().keys).toBe(false);
    expect(heard).toHaveBeenCalledOnce();
  });
});

function refuse(): never {
  throw new DOMException("denied", "SecurityError");
}
