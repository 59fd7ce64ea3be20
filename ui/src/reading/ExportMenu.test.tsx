import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { contextOf, FILM, renderInContext, resetBrowser, study, studyDataOf } from "../test/fixtures";
import { ExportMenu } from "./ExportMenu";

beforeEach(() => resetBrowser());
afterEach(() => cleanup());

function opened(format: string): void {
  const film = { ...FILM, facts: { ...FILM.facts, format } };
  const menu = (
    <QueryClientProvider client={new QueryClient()}>
      <ExportMenu />
    </QueryClientProvider>
  );
  renderInContext(menu, contextOf({ studyData: studyDataOf({ film, study: study() }) }));
  fireEvent.click(screen.getByRole("button", { name: /^Export/ }));
}

const archive = () => screen.getByRole("button", { name: /^For archives/ });

describe("exporting a reading", () => {
  test("a DICOM film can be exported as DICOM", () => {
    opened("DICOM");
    expect(archive()).toHaveProperty("disabled", false);
    expect(archive().textContent).toBe("For archives (DICOM)");
  });

  test("a film uploaded as a picture cannot, and the menu says why", () => {
    opened("PNG");
    expect(archive()).toHaveProperty("disabled", true);
    expect(archive().textContent).toContain("uploaded as a picture");
  });
});
