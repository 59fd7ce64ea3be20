import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import type { Check } from "../api/types";
import { CAVITY_BOX, CHECK } from "../test/scene";
import { type Asked, answers, LiveCheck } from "./liveCheck";

const boxAt = (x1: number, concept = "cavity"): Asked => ({ box: { ...CAVITY_BOX, x1 }, concept });

/** A model that answers when the test lets it. */
class Model {
  readonly asked: Asked[] = [];
  most = 0;
  private open: { told: (check: Check) => void; failed: (error: Error) => void }[] = [];

  ask = (_: string, asked: Asked): Promise<Check> => {
    this.asked.push(asked);
    return new Promise((told, failed) => {
      this.open.push({ told, failed });
      this.most = Math.max(this.most, this.open.length);
    });
  };

  /** Answer the oldest question, and let the pause after it pass. */
  async answer(error?: Error): Promise<void> {
    const one = this.open.shift();
    if (!one) throw new Error("Nothing was asked.");
    if (error) one.failed(error);
    else one.told({ ...CHECK, gap: this.asked.length });
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
    live.want(boxAt(10));
    expect(model.asked).toEqual([boxAt(10)]);
    await model.answer();
    expect(live.answer.get()?.asked).toEqual(boxAt(10));
  });

  test("the newest box wins: those drawn over in between are never asked about", async () => {
    for (const x1 of [10, 11, 12, 13]) live.want(boxAt(x1));
    await model.answer();
    await model.answer();
    expect(model.asked).toEqual([boxAt(10), boxAt(13)]);
    expect(live.answer.get()?.asked).toEqual(boxAt(13));
  });

  test("there is never more than one question at a time", async () => {
    for (let x1 = 0; x1 < 50; x1++) {
      live.want(boxAt(x1));
      await vi.advanceTimersByTimeAsync(7);
      if (x1 % 5 === 4) await model.answer();
    }
    expect(model.most).toBe(1);
    expect(model.asked.length).toBeGreaterThan(5);
  });

  test("a quick model is asked no more often than the server allows one person: a hundred times a second", async () => {
    const quick = new LiveCheck("s1", (study, asked) => {
      void model.ask(study, asked);
      return Promise.resolve(CHECK);
    });
    for (let time = 0; time < 1000; time++) {
      quick.want(boxAt(time));
      await vi.advanceTimersByTimeAsync(1);
    }
    expect(model.asked.length).toBeGreaterThan(20);
    expect(model.asked.length).toBeLessThanOrEqual(90);
  });

  test("an answer about another finding than the one now asked for is dropped", async () => {
    live.want(boxAt(10, "cavity"));
    live.want(boxAt(10, "effusion"));
    await model.answer();
    expect(live.answer.get()).toBeNull();
    await model.answer();
    expect(live.answer.get()?.asked.concept).toBe("effusion");
  });

  test("an answer about the same finding is told though the box moved on, and is no answer about the new box", async () => {
    live.want(boxAt(10));
    live.want(boxAt(11));
    await model.answer();
    const answer = live.answer.get();
    expect(answers(answer, boxAt(10).box, "cavity")).toBe(true);
    expect(answers(answer, boxAt(11).box, "cavity")).toBe(false);
    expect(answers(answer, boxAt(10).box, "effusion")).toBe(false);
    expect(answers(null, boxAt(10).box, "cavity")).toBe(false);
  });
});

describe("when nobody wants to know any more", () => {
  test("the answer is gone", async () => {
    live.want(boxAt(10));
    await model.answer();
    live.want(null);
    expect(live.answer.get()).toBeNull();
  });

  test("an answer that is still on its way is dropped", async () => {
    live.want(boxAt(10));
    live.want(null);
    await model.answer();
    expect(live.answer.get()).toBeNull();
    expect(model.asked).toHaveLength(1);
  });
});

describe("when the model cannot tell", () => {
  test("an older answer does not stay", async () => {
    live.want(boxAt(10));
    await model.answer();
    live.want(boxAt(11));
    await model.answer(new Error("busy"));
    expect(live.answer.get()).toBeNull();
  });

  test("the next box is asked about all the same", async () => {
    live.want(boxAt(10));
    await model.answer(new Error("busy"));
    live.want(boxAt(11));
    await model.answer();
    expect(live.answer.get()?.asked).toEqual(boxAt(11));
  });
});

describe("when the screen is left", () => {
  test("nothing is asked any more, and no answer told", async () => {
    live.want(boxAt(10));
    live.want(boxAt(11));
    live.end();
    await model.answer();
    expect(live.answer.get()).toBeNull();
    live.want(boxAt(12));
    await vi.advanceTimersByTimeAsync(1000);
    expect(model.asked).toEqual([boxAt(10)]);
    expect(model.waiting).toBe(0);
  });

  test("and shown again, boxes are asked about again", async () => {
    live.end();
    live.begin();
    live.want(boxAt(10));
    await model.answer();
    expect(live.answer.get()?.asked).toEqual(boxAt(10));
  });
});
