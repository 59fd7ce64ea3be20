import { useState } from "react";
import { useLocation } from "wouter";

import { client, told } from "../api/client";
import { forgetWork, may, type Me } from "../api/session";
import { Settings } from "../settings/Settings";
import { useWords } from "../words/words";

/** Where one is, where one can go, and who one is. */
export function Header({ me }: { me: Me | null }) {
  const words = useWords();
  const [location] = useLocation();
  const [choosing, setChoosing] = useState(false);
  const screens = [
    ["/films", words.common.films, true],
    ["/atlas", words.common.atlas, true],
    ["/model", words.common.model, true],
    ["/audit", words.common.audit, may(me, "admin")],
  ] as const;
  return (
    <header className="top">
      <a className="brand" href="#/films">
        <img src="/icon.svg" alt="" width={26} height={26} /> medgrape
      </a>
      {me && (
        <nav aria-label={words.common.screens}>
          {screens.map(
            ([path, name, open]) =>
              open && (
                <a key={path} href={`#${path}`} aria-current={location.startsWith(path) ? "page" : undefined}>
                  {name}
                </a>
              ),
          )}
        </nav>
      )}
      <span className="notice">{words.common.notice}</span>
      {me?.login && (
        <span className="who">{words.common.loggedInAs(me.name, words.common.roles[me.role])}</span>
      )}
      <button type="button" className="plain" onClick={() => setChoosing(true)}>
        {words.common.settings}
      </button>
      {me?.login && (
        <button type="button" className="plain" onClick={() => void leave()}>
          {words.common.logOut}
        </button>
      )}
      {choosing && <Settings onClose={() => setChoosing(false)} />}
    </header>
  );
}

async function leave(): Promise<void> {
  await told(client.POST("/api/v1/session/end"));
  forgetWork();
  window.location.reload();
}
