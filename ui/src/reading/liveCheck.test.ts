import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Check } from "../api/types";
import { CAVITY_BOX, CHECK } from "../test/fixtures";
import { type CheckRequest, isResultFor, LiveCheck } from "./liveCheck";

const boxAt = (x1: number, concept = "cavity"): CheckRequest => ({ box: { ...CAVITY_BOX, x1 }, concept });

/** A fake server whose checks the test answers one by one. */
class Model {
  readonly requests: CheckRequest[] = [];
  mostAtOnce = 0;
  private open: { resolve: (check: Check) => void; reject: (error: Error) => void }[] = [];

  ask = (_: string, request: CheckRequest): Promise<Check> => {
    this.requests.push(request);
    return new Promise((resolve, reject) => {
      this.open.push({ resolve: resolve, reject });
      this.mostAtOnce = Math.max(this.mostAtOnce, this.open.length);
    });
  };

  /** Answer the oldest request and wait for the pause after it. */
  async answer(error?: Error): Promise<void> {
    const pending = this.open.shift();
    if (!pending) throw new Error("Nothing was asked.");
    if (error) pending.reject(error);
    else pending.resolve({ ...CHECK, gap: this.requests.length });
    await vi.advanceTimersByTimeAsync(30);
  }

  get waiting(): number {
    return this.open.length;
  }
}

let model: Model;
let live: LiveCheck;

beforeEach(() => {
  vi.useFakeTimers();
  model = new Model();
  live = new LiveCheck("s1", model.ask);
});

afterEach(() => {
  vi.useRealTimers();
});

describe("requests while a box is drawn", () => {
  test("the first box is checked at once", async () => {
    live.request(boxAt(10));
    expect(model.requests).toEqual([boxAt(10)]);
    await model.answer();
    expect(live.result.get()?.request).toEqual(boxAt(10));
  });

  test("only the newest box is checked; boxes in between are skipped", async () => {
    for (const x1 of [10, 11, 12, 13]) live.request(boxAt(x1));
    await model.answer();
    await model.answer();
    expect(model.requests).toEqual([boxAt(10), boxAt(13)]);
    expect(live.result.get()?.request).toEqual(boxAt(13));
  });

  test("there is never more than one request at a time", async () => {
    for (let x1 = 0; x1 < 50; x1++) {
      live.request(boxAt(x1));
      await vi.advanceTimersByTimeAsync(7);
      if (x1 % 5 === 4) await model.answer();
    }
    expect(model.mostAtOnce).toBe(1);
    expect(model.requests.length).toBeGreaterThan(5);
  });

  test("with a fast server, requests stay below its limit of a hundred per second", async () => {
    const quick = new LiveCheck("s1", (study, request) => {
      void model.ask(study, request);
      return Promise.resolve(CHECK);
    });
    for (let time = 0; time < 1000; time++) {
      quick.request(boxAt(time));
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(model.requests.length).toBeGreaterThan(20);
    expect(model.requests.length).toBeLessThanOrEqual(90);
  });

  test("a result for another finding than the requested one is dropped", async () => {
    live.request(boxAt(10, "cavity"));
    live.request(boxAt(10, "effusion"));
    await model.answer();
    expect(live.result.get()).toBeNull();
    await model.answer();
    expect(live.result.get()?.request.concept).toBe("effusion");
  });

  test("a result for an earlier box of the same finding is kept, but does not count for the new box", async () => {
    live.request(boxAt(10));
    live.request(boxAt(11));
    await model.answer();
    const result = live.result.get();
    expect(isResultFor(result, boxAt(10).box, "cavity")).toBe(true);
    expect(isResultFor(result, boxAt(11).box, "cavity")).toBe(false);
    expect(isResultFor(result, boxAt(10).box, "effusion")).toBe(false);
    expect(isResultFor(null, boxAt(10).box, "cavity")).toBe(false);
  });
});

describe("after the request is cancelled", () => {
  test("the result is cleared", async () => {
    live.request(boxAt(10));
    await model.answer();
    live.request(null);
    expect(live.result.get()).toBeNull();
  });

  test("a pending result is dropped", async () => {
    live.request(boxAt(10));
    live.request(null);
    await model.answer();
    expect(live.result.get()).toBeNull();
    expect(model.requests).toHaveLength(1);
  });
});

describe("when a check fails", () => {
  test("the older result is cleared", async () => {
    live.request(boxAt(10));
    await model.answer();
    live.request(boxAt(11));
    await model.answer(new Error("busy"));
    expect(live.result.get()).toBeNull();
  });

  test("the next box is still checked", async () => {
    live.request(boxAt(10));
    await model.answer(new Error("busy"));
    live.request(boxAt(11));
    await model.answer();
    expect(live.result.get()?.request).toEqual(boxAt(11));
  });
});

describe("when the screen is closed", () => {
  test("nothing is requested and no result is set", async () => {
    live.request(boxAt(10));
    live.request(boxAt(11));
    live.stop();
    await model.answer();
    expect(live.result.get()).toBeNull();
    live.request(boxAt(12));
    await vi.advanceTimersByTimeAsync(1000);
    expect(model.requests).toEqual([boxAt(10)]);
    expect(model.waiting).toBe(0);
  });

  test("and opened again, boxes are checked again", async () => {
    live.stop();
    live.start();
    live.request(boxAt(10));
    await model.answer();
    expect(live.result.get()?.request).toEqual(boxAt(10));
  });
});
