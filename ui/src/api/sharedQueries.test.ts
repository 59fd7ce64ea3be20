import { describe, expect, test } from "vitest";

import { isTemporary, Problem, Unreachable } from "./problems";
import { hasRole } from "./session";
import { retryDelay } from "./sharedQueries";
import type { CurrentUser, Role } from "./types";

const busy = (retryAfter: number | null) => new Problem(429, "too_many_requests", "", null, retryAfter);

describe("the delay before a retry", () => {
  test("grows with every attempt, up to four seconds", () => {
    const pauses = [0, 1, 2, 3, 4, 10].map((attempt) => retryDelay(attempt, new Unreachable()));
    expect(pauses).toEqual([300, 600, 1200, 2400, 4000, 4000]);
  });

  test("is as long as the server asks for", () => {
    expect(retryDelay(5, busy(2))).toBe(2000);
    expect(retryDelay(0, busy(0))).toBe(0);
    expect(retryDelay(0, busy(60))).toBe(60_000);
  });

  test("grows as usual without a Retry-After header", () => {
    expect(retryDelay(1, busy(null))).toBe(600);
  });
});

describe("a temporary error", () => {
  test("is no answer, too many requests, or a server or proxy that is not ready", () => {
    expect(isTemporary(new Unreachable())).toBe(true);
    for (const status of [429, 502, 503, 504])
      expect(isTemporary(new Problem(status, "busy", "")), `${status}`).toBe(true);
  });

  test("is neither a permanent refusal nor an error of the page itself", () => {
    for (const status of [400, 401, 403, 404, 409, 413, 422, 500, 507])
      expect(isTemporary(new Problem(status, "refused", "")), `${status}`).toBe(false);
    expect(isTemporary(new TypeError("undefined is not a function"))).toBe(false);
    expect(isTemporary("busy")).toBe(false);
  });
});

describe("who may do what", () => {
  const as = (role: Role): CurrentUser => ({ name: "grace", role, csrf: "", login: true, notice: "" });

  test("each role includes the roles below it", () => {
    const roles: Role[] = ["reader", "curator", "admin"];
    const allowed = roles.map((mine) => roles.map((needed) => hasRole(as(mine), needed)));
    expect(allowed).toEqual([
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ]);
  });

  test("nobody has a role before the login", () => {
    expect(hasRole(null, "reader")).toBe(false);
  });
});
