import { useState } from "react";
import { useLocation } from "wouter";

import { client, unwrap } from "../api/client";
import { clearSavedWork, hasRole } from "../api/session";
import type { CurrentUser } from "../api/types";
import { useWords } from "../i18n/words";
import { SCREENS } from "../screens";
import { SettingsDialog } from "../settings/SettingsDialog";

/** Navigation, disclaimer, user name, settings and logout. */
export function Header({ me }: { me: CurrentUser | null }) {
  const words = useWords();
  const [location] = useLocation();
  const [settingsOpen, setSettingsOpen] = useState(false);
  const screens = SCREENS.filter(({ role }) => role === undefined || hasRole(me, role));
  return (
    <header className="page-header">
      <a className="brand" href="#/films">
        <img src="/icon.svg" alt="" width={26} height={26} /> medgrape
      </a>
      {me && (
        <nav aria-label={words.common.screens}>
          {screens.map(({ path, name }) => (
            <a key={path} href={`#${path}`} aria-current={location.startsWith(path) ? "page" : undefined}>
              {name(words)}
            </a>
          ))}
        </nav>
      )}
      <span className="notice">{words.common.notice}</span>
      {me?.login && (
        <span className="current-user">{words.common.loggedInAs(me.name, words.common.roles[me.role])}</span>
      )}
      <button type="button" className="plain" onClick={() => setSettingsOpen(true)}>
        {words.common.settings}
      </button>
      {me?.login && (
        <button type="button" className="plain" onClick={() => void logOut()}>
          {words.common.logOut}
        </button>
      )}
      {settingsOpen && <SettingsDialog onClose={() => setSettingsOpen(false)} />}
    </header>
  );
}

async function logOut(): Promise<void> {
  await unwrap(client.POST("/api/v1/session/end"));
  clearSavedWork();
  window.location.reload();
}
