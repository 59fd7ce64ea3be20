import { useInfiniteQuery } from "@tanstack/react-query";

import { may, session } from "../api/session";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { useWords } from "../words/words";
import { useSettled } from "../worklist/settling";
import { EventRow } from "./EventRow";
import { FilterBar } from "./FilterBar";
import { filters, isNarrowed } from "./filters";
import { eventsQuery } from "./queries";
import { Verification } from "./Verification";

/** Who did what, when, on which film; and whether that record can be trusted. */
export function Audit() {
  const words = useWords().audit;
  const { me } = useStore(session);
  if (!may(me, "admin")) return <p className="lonely">{words.forbidden}</p>;
  return (
    <div className="screen audit">
      <header className="screen-head">
        <h1>{words.title}</h1>
        <p className="quiet">{words.intro}</p>
      </header>
      <Verification />
      <FilterBar />
      <Events />
    </div>
  );
}

function Events() {
  const { audit: words, common } = useWords();
  const now = useSettled(useStore(filters), 250);
  const asked = useInfiniteQuery(eventsQuery(now));
  if (asked.isError) return <Trouble error={asked.error} again={() => void asked.refetch()} />;
  if (asked.isPending) return <p className="quiet lonely">{common.loading}</p>;
  const events = asked.data.pages.flatMap((page) => page.events);
  if (events.length === 0)
    return <p className="lonely quiet">{isNarrowed(now) ? words.noMatch : words.noEvents}</p>;
  return (
    <>
      <ol className="events" aria-label={words.events}>
        {events.map((event) => (
          <EventRow key={event.seq} event={event} />
        ))}
      </ol>
      {asked.hasNextPage && (
        <div className="row pages">
          <button
            type="button"
            disabled={asked.isFetchingNextPage}
            onClick={() => void asked.fetchNextPage()}
          >
            {asked.isFetchingNextPage ? words.loadingOlder : words.older}
          </button>
        </div>
      )}
    </>
  );
}
