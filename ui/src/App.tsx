import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect } from "react";
import { Redirect, Route, Router, Switch } from "wouter";
import { useHashLocation } from "wouter/use-hash-location";

import { connection } from "./api/serverConnection";
import { session, startSession } from "./api/session";
import { currentUserQuery } from "./api/sharedQueries";
import { ErrorMessage } from "./components/ErrorMessage";
import { Header } from "./components/Header";
import { useWords } from "./i18n/words";
import { useStore } from "./lib/store";
import { Login } from "./login/Login";
import { ReadingScreen } from "./reading/ReadingScreen";
import { parseSuggestion } from "./reading/SuggestionCard";
import { settings } from "./settings/settings";
import { WorklistScreen } from "./worklist/WorklistScreen";

const Atlas = lazy(() => import("./atlas/AtlasScreen").then(({ AtlasScreen }) => ({ default: AtlasScreen })));
const ModelScreen = lazy(() =>
  import("./model/ModelScreen").then(({ ModelScreen }) => ({ default: ModelScreen })),
);
const Audit = lazy(() => import("./audit/AuditScreen").then(({ AuditScreen }) => ({ default: AuditScreen })));

export function App() {
  const words = useWords();
  const { language, theme } = useStore(settings);
  const { me, expired } = useStore(session);
  const query = useQuery(currentUserQuery);
  useEffect(() => {
    if (query.data) startSession(query.data);
  }, [query.data]);
  useEffect(() => {
    document.documentElement.lang = language;
    document.documentElement.dataset.theme = theme;
  }, [language, theme]);
  if (query.isError) return <ErrorMessage error={query.error} onRetry={() => void query.refetch()} />;
  return (
    <Router hook={useHashLocation}>
      <a className="skip" href="#content" onClick={skip}>
        {words.common.toContent}
      </a>
      <Header me={me} />
      <Banner />
      <main id="content" tabIndex={-1}>
        {me && <Screens />}
        {!me && !expired && <p className="muted centred">{words.common.loading}</p>}
      </main>
      {expired && <Login again={me !== null} />}
    </Router>
  );
}

/** Shown at the top of every screen while the server does not answer. */
function Banner() {
  const words = useWords().common;
  const { lost } = useStore(connection);
  return (
    <div role="status" className={lost ? "banner lost" : "banner"}>
      {lost && words.unreachable}
    </div>
  );
}

function skip(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Screens() {
  const words = useWords();
  return (
    <Suspense fallback={<p className="muted centred">{words.common.loading}</p>}>
      <Switch>
        <Route path="/">
          <Redirect to="/films" replace />
        </Route>
        <Route path="/films" component={WorklistScreen} />
        <Route path="/films/:film/:version?">
          {({ film, version }) => <ReadingScreen key={`${film} ${version}`} film={film} version={version} />}
        </Route>
        <Route path="/try/:film/:concept/:corners">
          {({ film, concept, corners }) => (
            <ReadingScreen key={film} film={film} suggestion={parseSuggestion(concept, corners)} />
          )}
        </Route>
        <Route path="/atlas/:model?/:concept?">
          {({ model, concept }) => <Atlas model={model} concept={concept} />}
        </Route>
        <Route path="/model/:model?">{({ model }) => <ModelScreen model={model} />}</Route>
        <Route path="/audit" component={Audit} />
        <Route>
          <div className="centred">
            <p>{words.common.notFound}</p>
            <a href="#/films">{words.common.toFilms}</a>
          </div>
        </Route>
      </Switch>
    </Suspense>
  );
}
