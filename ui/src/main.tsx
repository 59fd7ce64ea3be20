import "./styles/base.css";
import "./styles/parts.css";
import "./styles/reading.css";
import "./styles/screens.css";

import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { createQueries } from "./api/queries";
import { App } from "./App";
import { Broken } from "./parts/Broken";

const place = document.getElementById("room");
if (place) {
  createRoot(place).render(
    <StrictMode>
      <Broken>
        <QueryClientProvider client={createQueries()}>
          <App />
        </QueryClientProvider>
      </Broken>
    </StrictMode>,
  );
}
