import "./styles/base.css";
import "./styles/components.css";
import "./styles/reading.css";
import "./styles/side-panel.css";
import "./styles/screens.css";
import "./styles/login.css";
import "./styles/worklist.css";
import "./styles/atlas.css";
import "./styles/model.css";
import "./styles/audit.css";
import "./styles/narrow-screens.css";

import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { createQueryClient } from "./api/sharedQueries";
import { App } from "./App";
import { ErrorBoundary } from "./components/ErrorBoundary";

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <ErrorBoundary>
        <QueryClientProvider client={createQueryClient()}>
          <App />
        </QueryClientProvider>
      </ErrorBoundary>
    </StrictMode>,
  );
}
