import { useInfiniteQuery } from "@tanstack/react-query";

import { hasRole, session } from "../api/session";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { useDebounced } from "../lib/useDebounced";
import { EventRow } from "./EventRow";
import { FilterBar } from "./FilterBar";
import { isFiltered, logFilters } from "./filters";
import { LogVerification } from "./LogVerification";
import { eventsQuery } from "./queries";

/** The audit log: who did what, when, on which film; and whether the log is intact. */
export function AuditScreen() {
  const words = useWords().audit;
  const { me } = useStore(session);
  if (!hasRole(me, "admin")) return <p className="centred">{words.forbidden}</p>;
  return (
    <div className="screen audit">
      <header className="screen-head">
        <h1>{words.title}</h1>
        <p className="muted">{words.intro}</p>
      </header>
      <LogVerification />
      <FilterBar />
      <Events />
    </div>
  );
}

function Events() {
  const { audit: words, common } = useWords();
  const filters = useDebounced(useStore(logFilters), 250);
  const query = useInfiniteQuery(eventsQuery(filters));
  if (query.isError) return <ErrorMessage error={query.error} onRetry={() => void query.refetch()} />;
  if (query.isPending) return <p className="muted centred">{common.loading}</p>;
  const events = query.data.pages.flatMap((page) => page.events);
  if (events.length === 0)
    return <p className="centred muted">{isFiltered(filters) ? words.noMatch : words.noEvents}</p>;
  return (
    <>
      <ol className="events" aria-label={words.events}>
        {events.map((event) => (
          <EventRow key={event.seq} event={event} />
        ))}
      </ol>
      {query.hasNextPage && (
        <div className="row pages">
          <button
            type="button"
            disabled={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          >
            {query.isFetchingNextPage ? words.loadingOlder : words.older}
          </button>
        </div>
      )}
    </>
  );
}
