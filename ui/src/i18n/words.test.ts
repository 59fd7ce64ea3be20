import { describe, expect, test } from "vitest";

import type { EventDetails } from "../audit/eventDetails";
import { WORDS } from "./words";

/** English shows these as the server sends them; other languages translate the known ones. */
const ONE_SIDED = ["common.problems", "model.groups", "model.measures"];

type Leaf = string | ((...given: unknown[]) => unknown);

/** All texts by their path. */
function leaves(value: unknown, at = ""): Map<string, Leaf> {
  if (typeof value === "string" || typeof value === "function") return new Map([[at, value as Leaf]]);
  if (typeof value !== "object" || value === null) throw new Error(`${at} is not a text.`);
  const found = Object.entries(value).map(([key, inner]) => leaves(inner, at ? `${at}.${key}` : key));
  return new Map(found.flatMap((entries) => [...entries]));
}

const isShared = (at: string) => !ONE_SIDED.some((prefix) => at.startsWith(`${prefix}.`));
const [english, german] = [leaves(WORDS.en), leaves(WORDS.de)];
const shared = [...english.keys()].filter(isShared);
const functions = shared.filter((at) => typeof english.get(at) === "function");

const EVENT: EventDetails = {
  actor: "grace",
  correction: { kind: "box", concept: "cavity", against: "effusion" },
  replaced: { kind: "reject", concept: "nodule", against: null },
  claimed: "cavity",
  dominant: "effusion",
  reason: "seen on CT",
  concept: "fracture",
  prototypes: [71, 72],
  films: 73,
  format: "dicom",
  name: "resnet",
  dataSet: "tbx11k",
  user: "henry",
  role: "visitor",
  disabled: false,
  passwordChanged: false,
  before: ["healthy", 0.74],
  after: ["active_tb", 0.75],
};
const EVENT_VALUES = /grace|cavity|effusion|nodule|fracture|7\d|dicom|resnet|tbx11k|henry|visitor/gi;

/** The text for these arguments, as numbers or as names. */
function textFor(at: string, leaf: Leaf | undefined, given: number[]): string {
  if (typeof leaf !== "function") return String(leaf);
  if (at === "audit.correction") return String(leaf(EVENT.correction));
  if (/^audit\.(sentences\.|other$)/.test(at)) return String(leaf(EVENT, "something else"));
  try {
    return String(leaf(...given));
  } catch {
    return String(leaf(...given.map(String)));
  }
}

/** The arguments that the text mentions, sorted. */
function mentioned(at: string, leaf: Leaf | undefined, given: number[]): string {
  const text = textFor(at, leaf, given);
  const found = [
    ...given.map(String).filter((name) => text.includes(name)),
    ...(text.match(EVENT_VALUES) ?? []),
  ];
  return [...new Set(found.map((name) => name.toLowerCase()))].sort().join();
}

describe("the page's languages", () => {
  test("have the same keys, including list lengths", () => {
    expect([...german.keys()].filter(isShared).sort()).toEqual([...shared].sort());
    expect(shared.length).toBeGreaterThan(300);
  });

  test("agree on which texts are functions", () => {
    const differing = shared.filter((at) => typeof english.get(at) !== typeof german.get(at));
    expect(differing).toEqual([]);
  });

  test("have no empty text", () => {
    for (const language of [english, german]) {
      const empty = [...language].filter(([, leaf]) => typeof leaf === "string" && leaf.trim() === "");
      expect(empty.map(([at]) => at)).toEqual([]);
    }
  });

  test.each([1, 2, 95])("give a complete text for a count of %i", (count) => {
    for (const language of [english, german])
      for (const at of functions) {
        const text = textFor(at, language.get(at), [count, count, count, count]);
        expect(text, at).toMatch(/\S/);
        expect(text, at).not.toMatch(/undefined|NaN|\[object/);
      }
  });

  test("mention the same arguments", () => {
    const given = [31, 42, 53, 64];
    const differing = functions.filter(
      (at) => mentioned(at, english.get(at), given) !== mentioned(at, german.get(at), given),
    );
    expect(differing).toEqual([]);
  });

  test.each(ONE_SIDED)("have no English entries in %s, only translations", (prefix) => {
    const within = (language: Map<string, Leaf>) =>
      [...language.keys()].filter((at) => at.startsWith(`${prefix}.`));
    expect(within(english)).toEqual([]);
    expect(within(german).length).toBeGreaterThan(0);
  });
});
