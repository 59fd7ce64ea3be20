import { useQuery } from "@tanstack/react-query";

import { modelQuery, modelsQuery } from "../api/sharedQueries";
import { useWords } from "../i18n/words";
import { displayName } from "../lib/format";
import { useStore } from "../lib/store";
import { isFiltered, NO_FILTERS, setFilter, VIEWS, worklistFilters } from "./filters";

/** Filters of the film list. */
export function FilterBar() {
  const words = useWords().worklist;
  const filters = useStore(worklistFilters);
  const classes = useClasses(filters.likeliest);
  return (
    <form
      className="filters"
      role="search"
      aria-label={words.filters}
      onSubmit={(event) => event.preventDefault()}
    >
      <label className="field grow">
        <span>{words.search}</span>
        <input
          type="search"
          value={filters.search}
          placeholder={words.searchHint}
          maxLength={100}
          onChange={(event) => setFilter({ search: event.target.value })}
        />
      </label>
      <label className="field">
        <span>{words.likeliest}</span>
        <select value={filters.likeliest} onChange={(event) => setFilter({ likeliest: event.target.value })}>
          <option value="">{words.anyClass}</option>
          {classes.map((name) => (
            <option key={name} value={name}>
              {displayName(name)}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>{words.view}</span>
        <select value={filters.view} onChange={(event) => setFilter({ view: event.target.value })}>
          <option value="">{words.anyView}</option>
          {VIEWS.map((view) => (
            <option key={view} value={view}>
              {words.views[view]}
            </option>
          ))}
        </select>
      </label>
      <label className="checkbox">
        <input
          type="checkbox"
          checked={filters.unread}
          onChange={(event) => setFilter({ unread: event.target.checked })}
        />
        {words.unread}
      </label>
      <label className="checkbox">
        <input
          type="checkbox"
          checked={filters.mine}
          onChange={(event) => setFilter({ mine: event.target.checked })}
        />
        {words.mine}
      </label>
      {isFiltered(filters) && (
        <button type="button" className="plain" onClick={() => worklistFilters.set(NO_FILTERS)}>
          {words.reset}
        </button>
      )}
    </form>
  );
}

/** Classes of the model in use, plus the selected class if that model does not know it. */
function useClasses(chosen: string): string[] {
  const models = useQuery(modelsQuery);
  const versionInUse = models.data?.find((model) => model.in_use)?.version ?? "";
  const card = useQuery({ ...modelQuery(versionInUse), enabled: versionInUse !== "" });
  const classes = [...(card.data?.classes ?? [])];
  return chosen === "" || classes.includes(chosen) ? classes : [...classes, chosen];
}
