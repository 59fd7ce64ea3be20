import { describe, expect, test } from "vitest";

import type { EventDetails } from "../audit/eventDetails";
import { WORDS } from "./words";

/** In English these are told as the server or the model's report says them; other languages translate what they can. */
const ONE_SIDED = ["common.problems", "model.groups", "model.measures"];

type Leaf = string | ((...given: unknown[]) => unknown);

/** Everything that is said, by where it stands. */
function leaves(value: unknown, at = ""): Map<string, Leaf> {
  if (typeof value === "string" || typeof value === "function") return new Map([[at, value as Leaf]]);
  if (typeof value !== "object" || value === null) throw new Error(`${at} is no word.`);
  const found = Object.entries(value).map(([key, inner]) => leaves(inner, at ? `${at}.${key}` : key));
  return new Map(found.flatMap((entries) => [...entries]));
}

const isShared = (at: string) => !ONE_SIDED.some((prefix) => at.startsWith(`${prefix}.`));
const [english, german] = [leaves(WORDS.en), leaves(WORDS.de)];
const shared = [...english.keys()].filter(isShared);
const sayings = shared.filter((at) => typeof english.get(at) === "function");

const DEED: EventDetails = {
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
const IN_DEED = /grace|cavity|effusion|nodule|fracture|7\d|dicom|resnet|tbx11k|henry|visitor/gi;

/** What is said about so many, or, where names are expected, about things that are called so. */
function about(at: string, leaf: Leaf | undefined, given: number[]): string {
  if (typeof leaf !== "function") return String(leaf);
  if (at === "audit.correction") return String(leaf(DEED.correction));
  if (/^audit\.(sentences\.|other$)/.test(at)) return String(leaf(DEED, "something else"));
  try {
    return String(leaf(...given));
  } catch {
    return String(leaf(...given.map(String)));
  }
}

/** Which of these things are named, in whatever order? */
function named(at: string, leaf: Leaf | undefined, given: number[]): string {
  const text = about(at, leaf, given);
  const found = [...given.map(String).filter((name) => text.includes(name)), ...(text.match(IN_DEED) ?? [])];
  return [...new Set(found.map((name) => name.toLowerCase()))].sort().join();
}

describe("the page's languages", () => {
  test("say the same things at every depth, lists of the same length included", () => {
    expect([...german.keys()].filter(isShared).sort()).toEqual([...shared].sort());
    expect(shared.length).toBeGreaterThan(300);
  });

  test("say each thing in the same manner: as it stands, or about something", () => {
    const other = shared.filter((at) => typeof english.get(at) !== typeof german.get(at));
    expect(other).toEqual([]);
  });

  test("leave nothing empty", () => {
    for (const language of [english, german]) {
      const empty = [...language].filter(([, leaf]) => typeof leaf === "string" && leaf.trim() === "");
      expect(empty.map(([at]) => at)).toEqual([]);
    }
  });

  test.each([1, 2, 95])("always have something to say, about %i of something too", (count) => {
    for (const language of [english, german])
      for (const at of sayings) {
        const text = about(at, language.get(at), [count, count, count, count]);
        expect(text, at).toMatch(/\S/);
        expect(text, at).not.toMatch(/undefined|NaN|\[object/);
      }
  });

  test("name the same things when they say the same", () => {
    const given = [31, 42, 53, 64];
    const differing = sayings.filter(
      (at) => named(at, english.get(at), given) !== named(at, german.get(at), given),
    );
    expect(differing).toEqual([]);
  });

  test.each(ONE_SIDED)("know beyond English only what is translated in %s", (prefix) => {
    const within = (language: Map<string, Leaf>) =>
      [...language.keys()].filter((at) => at.startsWith(`${prefix}.`));
    expect(within(english)).toEqual([]);
    expect(within(german).length).toBeGreaterThan(0);
  });
});
