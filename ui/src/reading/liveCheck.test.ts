import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Check } from "../api/types";
import { CAVITY_BOX, CHECK } from "../test/fixtures";
import { type CheckRequest, isResultFor, LiveCheck } from "./liveCheck";

const boxAt = (x1: number, concept = "cavity"): CheckRequest => ({ box: { ...CAVITY_BOX, x1 }, concept });

/** A model that answers when the test lets it. */
class Model {
  readonly asked: CheckRequest[] = [];
  most = 0;
  private open: { told: (check: Check) => void; failed: (error: Error) => void }[] = [];

  ask = (_: string, request: CheckRequest): Promise<Check> => {
    this.asked.push(request);
    return new Promise((resolve, failed) => {
      this.open.push({ told: resolve, failed });
      this.most = Math.max(this.most, this.open.length);
    });
  };

  /** Answer the oldest question, and let the pause after it pass. */
  async answer(error?: Error): Promise<void> {
    const pending = this.open.shift();
    if (!pending) throw new Error("Nothing was asked.");
    if (error) pending.failed(error);
    else pending.told({ ...CHECK, gap: this.asked.length });
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

describe("asking while a box is drawn", () => {
  test("the first box is asked about at once, and the answer told", async () => {
    live.request(boxAt(10));
    expect(model.asked).toEqual([boxAt(10)]);
    await model.answer();
    expect(live.result.get()?.request).toEqual(boxAt(10));
  });

  test("the newest box wins: those drawn over in between are never asked about", async () => {
    for (const x1 of [10, 11, 12, 13]) live.request(boxAt(x1));
    await model.answer();
    await model.answer();
    expect(model.asked).toEqual([boxAt(10), boxAt(13)]);
    expect(live.result.get()?.request).toEqual(boxAt(13));
  });

  test("there is never more than one question at a time", async () => {
    for (let x1 = 0; x1 < 50; x1++) {
      live.request(boxAt(x1));
      await vi.advanceTimersByTimeAsync(7);
      if (x1 % 5 === 4) await model.answer();
    }
    expect(model.most).toBe(1);
    expect(model.asked.length).toBeGreaterThan(5);
  });

  test("a quick model is asked no more often than the server allows one person: a hundred times a second", async () => {
    const quick = new LiveCheck("s1", (study, request) => {
      void model.ask(study, request);
      return Promise.resolve(CHECK);
    });
    for (let time = 0; time < 1000; time++) {
      quick.request(boxAt(time));
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(model.asked.length).toBeGreaterThan(20);
    expect(model.asked.length).toBeLessThanOrEqual(90);
  });

  test("an answer about another finding than the one now asked for is dropped", async () => {
    live.request(boxAt(10, "cavity"));
    live.request(boxAt(10, "effusion"));
    await model.answer();
    expect(live.result.get()).toBeNull();
    await model.answer();
    expect(live.result.get()?.request.concept).toBe("effusion");
  });

  test("an answer about the same finding is told though the box moved on, and is no answer about the new box", async () => {
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

describe("when nobody wants to know any more", () => {
  test("the answer is gone", async () => {
    live.request(boxAt(10));
    await model.answer();
    live.request(null);
    expect(live.result.get()).toBeNull();
  });

  test("an answer that is still on its way is dropped", async () => {
    live.request(boxAt(10));
    live.request(null);
    await model.answer();
    expect(live.result.get()).toBeNull();
    expect(model.asked).toHaveLength(1);
  });
});

describe("when the model cannot tell", () => {
  test("an older answer does not stay", async () => {
    live.request(boxAt(10));
    await model.answer();
    live.request(boxAt(11));
    await model.answer(new Error("busy"));
    expect(live.result.get()).toBeNull();
  });

  test("the next box is asked about all the same", async () => {
    live.request(boxAt(10));
    await model.answer(new Error("busy"));
    live.request(boxAt(11));
    await model.answer();
    expect(live.result.get()?.request).toEqual(boxAt(11));
  });
});

describe("when the screen is left", () => {
  test("nothing is asked any more, and no answer told", async () => {
    live.request(boxAt(10));
    live.request(boxAt(11));
    live.stop();
    await model.answer();
    expect(live.result.get()).toBeNull();
    live.request(boxAt(12));
    await vi.advanceTimersByTimeAsync(1000);
    expect(model.asked).toEqual([boxAt(10)]);
    expect(model.waiting).toBe(0);
  });

  test("and shown again, boxes are asked about again", async () => {
    live.stop();
    live.start();
    live.request(boxAt(10));
    await model.answer();
    expect(live.result.get()?.request).toEqual(boxAt(10));
  });
});
