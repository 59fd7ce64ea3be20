import { cleanup, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { boxed, explanation, resetBrowser, conceptSeen, renderInContext, study } from "../test/fixtures";
import { ClassProbabilities } from "./ClassProbabilities";

beforeEach(() => resetBrowser());
afterEach(() => cleanup());

const CORRECTED = study({
  corrections: [boxed()],
  prediction: { active_tb: 0.9, healthy: 0.1 },
  first_prediction: { active_tb: 0.7, healthy: 0.3 },
});
const rowOf = (name: string) => {
  const row = screen.getByText(name).closest("li");
  if (!row) throw new Error(`${name} has no row.`);
  return row;
};

describe("what the model says", () => {
  test("is the probability of every class, by a name for people", () => {
    renderInContext(<ClassProbabilities study={study()} explanation={undefined} />);
    expect(within(rowOf("Active TB")).getByText("70%")).toBeTruthy();
    expect(within(rowOf("Healthy")).getByText("30%")).toBeTruthy();
  });

  test("says nothing of what it said first as long as nobody corrected it", () => {
    renderInContext(<ClassProbabilities study={{ ...CORRECTED, corrections: [] }} explanation={undefined} />);
    expect(screen.queryByText(/^initially/)).toBeNull();
  });

  test("says where each class stood before any correction once there is one", () => {
    renderInContext(<ClassProbabilities study={CORRECTED} explanation={undefined} />);
    expect(within(rowOf("Active TB")).getByText("initially 70%")).toBeTruthy();
    expect(within(rowOf("Active TB")).getByText("90%")).toBeTruthy();
    expect(within(rowOf("Healthy")).getByText("initially 30%")).toBeTruthy();
  });

  test("is drawn as long as it is likely, with a mark where it stood first", () => {
    const { container } = renderInContext(<ClassProbabilities study={CORRECTED} explanation={undefined} />);
    const bars = [...container.querySelectorAll<HTMLElement>(".meter i")].map((bar) => bar.style.width);
    const marks = [...container.querySelectorAll<HTMLElement>(".meter b")].map((mark) => mark.style.left);
    expect(bars).toEqual(["90%", "10%"]);
    expect(marks).toEqual(["calc(70% - 1px)", "calc(30% - 1px)"]);
  });
});

describe("which findings moved a class", () => {
  const moving = (by: number | null) => ({ moves: { active_tb: by, healthy: 0 } });
  const MOVED = explanation([
    conceptSeen("cavity", "Cavity", moving(0.12)),
    conceptSeen("effusion", "Pleural effusion", moving(-0.31)),
    conceptSeen("nodule", "Nodule", moving(0.004)),
    conceptSeen("fracture", "Fracture", moving(0.02)),
    conceptSeen("scar", "Scar", moving(0.05)),
    conceptSeen("silent", "Silent", { moves: null }),
    conceptSeen("unknown", "Unknown", moving(null)),
  ]);
  const chips = (name: string) =>
    [...rowOf(name).querySelectorAll(".chip")].map((chip) => chip.textContent.replace(/\s+/g, " ").trim());

  test("is told for the three that moved it most, with their place in the list of findings and their sign", () => {
    renderInContext(<ClassProbabilities study={study()} explanation={MOVED} />);
    expect(chips("Active TB")).toEqual(["2Pleural effusion −31", "1Cavity +12", "5Scar +5"]);
  });

  test("is told for up and for down apart", () => {
    renderInContext(<ClassProbabilities study={study()} explanation={MOVED} />);
    const looks = [...rowOf("Active TB").querySelectorAll(".chip")].map((chip) =>
      chip.classList.contains("up"),
    );
    expect(looks).toEqual([false, true, true]);
  });

  test("is left out where none moved it by as much as one per cent", () => {
    renderInContext(<ClassProbabilities study={study()} explanation={MOVED} />);
    expect(chips("Healthy")).toEqual([]);
    expect(within(rowOf("Healthy")).queryByText("influenced by")).toBeNull();
  });
});
