import { describe, expect, test } from "vitest";

import type { LogEvent } from "../api/types";
import { eventSentence } from "./EventRow";
import { logQueryParams, NO_FILTERS } from "./filters";
import { de, en } from "./words";

function event(kind: string, body: Record<string, unknown> = {}): LogEvent {
  const rest = { seq: 1, at: "", film: null, study: null, model: null, previous: "", hash: "", seal: "" };
  return { ...rest, actor: "ada", kind, body };
}

const box = { kind: "box", concept: "active_tb", box: [1, 2, 3, 4], confirmed: false, check: null };

test("both languages have a name and a sentence for the same kinds of events", () => {
  expect(Object.keys(en.sentences).sort()).toEqual(Object.keys(en.kinds).sort());
  expect(Object.keys(de.sentences).sort()).toEqual(Object.keys(en.sentences).sort());
  expect(Object.keys(de.kinds).sort()).toEqual(Object.keys(en.kinds).sort());
});

describe("an event becomes a sentence", () => {
  test("a box", () => {
    expect(eventSentence(event("study.corrected", { correction: box }), en)).toBe(
      "ada said: Active TB inside a box.",
    );
  });

  test("a box confirmed despite the warning says so", () => {
    const correction = { ...box, confirmed: true, check: { dominant: "obsolete_tb", mismatch: true } };
    expect(eventSentence(event("study.corrected", { correction }), en)).toContain(
      "although the model sees Obsolete TB there",
    );
    expect(eventSentence(event("study.corrected", { correction }), de)).toContain(
      "obwohl das Modell dort „Obsolete TB“ sieht",
    );
  });

  test("a confirmed box without a warning mentions no other finding", () => {
    const correction = { ...box, confirmed: true, check: { dominant: "active_tb", mismatch: false } };
    expect(eventSentence(event("study.corrected", { correction }), en)).toBe(
      "ada said: Active TB inside a box.",
    );
  });

  test("a rejection of all findings", () => {
    const correction = { kind: "reject", concept: null, box: null, confirmed: false, check: null };
    expect(eventSentence(event("study.corrected", { correction }), en)).toContain("none of the findings");
  });

  test("a redrawn box names the old one", () => {
    const replaced = { ...box, concept: "cavity" };
    expect(eventSentence(event("study.redrawn", { correction: box, replaced }), en)).toBe(
      "ada redrew a box: Active TB inside a box, in place of: Cavity inside a box.",
    );
  });

  test("a warning names both findings", () => {
    const sentence = eventSentence(
      event("study.warned", { check: { claimed: "active_tb", dominant: "obsolete_tb" } }),
      de,
    );
    expect(sentence).toContain("„Active TB“");
    expect(sentence).toContain("„Obsolete TB“");
  });

  test("an unknown kind of event is shown with its raw name", () => {
    expect(eventSentence(event("moon.landed"), en)).toBe("ada: moon.landed");
  });

  test("an empty body still gives a complete sentence", () => {
    for (const kind of Object.keys(en.kinds)) {
      expect(eventSentence(event(kind), en)).toMatch(/\.$/);
      expect(eventSentence(event(kind), de)).toMatch(/\.$/);
    }
  });
});

test("days are in the local time zone, and the last day is included", () => {
  const params = logQueryParams({ ...NO_FILTERS, since: "2026-11-18", until: "2026-11-18", actor: " ada " });
  expect(params.actor).toBe("ada");
  expect(params.since).toBe(new Date(2026, 10, 18).toISOString());
  expect(params.until).toBe(new Date(2026, 10, 19).toISOString());
});

test("an incomplete date is not sent", () => {
  expect(logQueryParams({ ...NO_FILTERS, since: "2026-11" })).toEqual({});
});
