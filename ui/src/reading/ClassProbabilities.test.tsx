import { cleanup, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { boxed, conceptSeen, explanation, renderInContext, resetBrowser, study } from "../test/fixtures";
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

describe("class probabilities", () => {
  test("are listed with readable class names", () => {
    renderInContext(<ClassProbabilities study={study()} explanation={undefined} />);
    expect(within(rowOf("Active TB")).getByText("70%")).toBeTruthy();
    expect(within(rowOf("Healthy")).getByText("30%")).toBeTruthy();
  });

  test("show no initial value before the first correction", () => {
    renderInContext(<ClassProbabilities study={{ ...CORRECTED, corrections: [] }} explanation={undefined} />);
    expect(screen.queryByText(/^initially/)).toBeNull();
  });

  test("show the initial value after a correction", () => {
    renderInContext(<ClassProbabilities study={CORRECTED} explanation={undefined} />);
    expect(within(rowOf("Active TB")).getByText("initially 70%")).toBeTruthy();
    expect(within(rowOf("Active TB")).getByText("90%")).toBeTruthy();
    expect(within(rowOf("Healthy")).getByText("initially 30%")).toBeTruthy();
  });

  test("are drawn as bars with a mark at the initial value", () => {
    const { container } = renderInContext(<ClassProbabilities study={CORRECTED} explanation={undefined} />);
    const bars = [...container.querySelectorAll<HTMLElement>(".meter i")].map((bar) => bar.style.width);
    const marks = [...container.querySelectorAll<HTMLElement>(".meter b")].map((mark) => mark.style.left);
    expect(bars).toEqual(["90%", "10%"]);
    expect(marks).toEqual(["calc(70% - 1px)", "calc(30% - 1px)"]);
  });
});

describe("the findings that influenced a class", () => {
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

  test("are the three with the largest effect, with position and sign", () => {
    renderInContext(<ClassProbabilities study={study()} explanation={MOVED} />);
    expect(chips("Active TB")).toEqual(["2Pleural effusion −31", "1Cavity +12", "5Scar +5"]);
  });

  test("differ in style for up and down", () => {
    renderInContext(<ClassProbabilities study={study()} explanation={MOVED} />);
    const looks = [...rowOf("Active TB").querySelectorAll(".chip")].map((chip) =>
      chip.classList.contains("up"),
    );
    expect(looks).toEqual([false, true, true]);
  });

  test("are left out below one percent", () => {
    renderInContext(<ClassProbabilities study={study()} explanation={MOVED} />);
    expect(chips("Healthy")).toEqual([]);
    expect(within(rowOf("Healthy")).queryByText("influenced by")).toBeNull();
  });
});
