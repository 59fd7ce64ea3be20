/** All screens of the page: their addresses, and their entries in the navigation. */
import { lazy, type ReactElement } from "react";
import { Redirect, Route } from "wouter";

import type { CurrentUser } from "./api/types";
import type { Words } from "./i18n/words";
import { ReadingScreen } from "./reading/ReadingScreen";
import { parseSuggestion } from "./reading/SuggestionCard";
import { WorklistScreen } from "./worklist/WorklistScreen";

const Atlas = lazy(() => import("./atlas/AtlasScreen").then(({ AtlasScreen }) => ({ default: AtlasScreen })));
const ModelScreen = lazy(() =>
  import("./model/ModelScreen").then(({ ModelScreen }) => ({ default: ModelScreen })),
);
const Audit = lazy(() => import("./audit/AuditScreen").then(({ AuditScreen }) => ({ default: AuditScreen })));

export interface Screen {
  path: string;
  name: (words: Words) => string;
  /** The role that a user needs to find the screen in the navigation. */
  role?: CurrentUser["role"];
  routes: ReactElement[];
}

export const SCREENS: readonly Screen[] = [
  {
    path: "/films",
    name: (words) => words.common.films,
    routes: [
      <Route key="home" path="/">
        <Redirect to="/films" replace />
      </Route>,
      <Route key="worklist" path="/films" component={WorklistScreen} />,
      <Route key="film" path="/films/:film/:version?">
        {({ film, version }) => <ReadingScreen key={`${film} ${version}`} film={film} version={version} />}
      </Route>,
      <Route key="suggestion" path="/try/:film/:concept/:corners">
        {({ film, concept, corners }) => (
          <ReadingScreen key={film} film={film} suggestion={parseSuggestion(concept, corners)} />
        )}
      </Route>,
    ],
  },
  {
    path: "/atlas",
    name: (words) => words.common.atlas,
    routes: [
      <Route key="atlas" path="/atlas/:model?/:concept?">
        {({ model, concept }) => <Atlas model={model} concept={concept} />}
      </Route>,
    ],
  },
  {
    path: "/model",
    name: (words) => words.common.model,
    routes: [
      <Route key="model" path="/model/:model?">
        {({ model }) => <ModelScreen model={model} />}
      </Route>,
    ],
  },
  {
    path: "/audit",
    name: (words) => words.common.audit,
    role: "admin",
    routes: [<Route key="audit" path="/audit" component={Audit} />],
  },
];
