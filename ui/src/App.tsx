import { useQuery } from "@tanstack/react-query";
import { Suspense, useEffect } from "react";
import { Route, Router, Switch } from "wouter";
import { useHashLocation } from "wouter/use-hash-location";

import { connection } from "./api/serverConnection";
import { session, startSession } from "./api/session";
import { currentUserQuery } from "./api/sharedQueries";
import { ErrorMessage } from "./components/ErrorMessage";
import { Header } from "./components/Header";
import { useWords } from "./i18n/words";
import { useStore } from "./lib/store";
import { Login } from "./login/Login";
import { SCREENS } from "./screens";
import { settings } from "./settings/settings";

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
        {SCREENS.flatMap(({ routes }) => routes)}
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
