import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useEffect } from "react";
import { Redirect, Route, Router, Switch } from "wouter";
import { useHashLocation } from "wouter/use-hash-location";

import { meQuery } from "./api/queries";
import { begin, session } from "./api/session";
import { Banner } from "./parts/Banner";
import { Header } from "./parts/Header";
import { useStore } from "./parts/store";
import { Trouble } from "./parts/Trouble";
import { ReadingScreen } from "./reading/ReadingScreen";
import { suggested } from "./reading/Try";
import { Login } from "./session/Login";
import { settings } from "./settings/settings";
import { useWords } from "./words/words";
import { Worklist } from "./worklist/Worklist";

const Atlas = lazy(() => import("./atlas/Atlas").then(({ Atlas }) => ({ default: Atlas })));
const ModelScreen = lazy(() =>
  import("./model/ModelScreen").then(({ ModelScreen }) => ({ default: ModelScreen })),
);
const Audit = lazy(() => import("./audit/Audit").then(({ Audit }) => ({ default: Audit })));

export function App() {
  const words = useWords();
  const { language, theme } = useStore(settings);
  const { me, ended } = useStore(session);
  const asked = useQuery(meQuery);
  useEffect(() => {
    if (asked.data) begin(asked.data);
  }, [asked.data]);
  useEffect(() => {
    document.documentElement.lang = language;
    document.documentElement.dataset.theme = theme;
  }, [language, theme]);
  if (asked.isError) return <Trouble error={asked.error} again={() => void asked.refetch()} />;
  return (
    <Router hook={useHashLocation}>
      <a className="skip" href="#content" onClick={skip}>
        {words.common.toContent}
      </a>
      <Header me={me} />
      <Banner />
      <main id="content" tabIndex={-1}>
        {me && <Screens />}
        {!me && !ended && <p className="quiet lonely">{words.common.loading}</p>}
      </main>
      {ended && <Login again={me !== null} />}
    </Router>
  );
}

function skip(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Screens() {
  const words = useWords();
  return (
    <Suspense fallback={<p className="quiet lonely">{words.common.loading}</p>}>
      <Switch>
        <Route path="/">
          <Redirect to="/films" replace />
        </Route>
        <Route path="/films" component={Worklist} />
        <Route path="/films/:film/:version?">
          {({ film, version }) => <ReadingScreen key={`${film} ${version}`} film={film} version={version} />}
        </Route>
        <Route path="/try/:film/:concept/:corners">
          {({ film, concept, corners }) => (
            <ReadingScreen key={film} film={film} suggestion={suggested(concept, corners)} />
          )}
        </Route>
        <Route path="/atlas/:model?/:concept?">
          {({ model, concept }) => <Atlas model={model} concept={concept} />}
        </Route>
        <Route path="/model/:model?">{({ model }) => <ModelScreen model={model} />}</Route>
        <Route path="/audit" component={Audit} />
        <Route>
          <div className="lonely">
            <p>{words.common.nothingHere}</p>
            <a href="#/films">{words.common.toFilms}</a>
          </div>
        </Route>
      </Switch>
    </Suspense>
  );
}
