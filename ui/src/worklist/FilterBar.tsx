import { useQuery } from "@tanstack/react-query";

import { modelQuery, modelsQuery } from "../api/queries";
import { readable } from "../parts/format";
import { useStore } from "../parts/store";
import { useWords } from "../words/words";
import { ALL, choose, filters, isNarrowed, VIEWS } from "./filters";

/** Narrows the list down. */
export function FilterBar() {
  const words = useWords().worklist;
  const now = useStore(filters);
  const classes = useClasses(now.likeliest);
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
          value={now.search}
          placeholder={words.searchHint}
          maxLength={100}
          onChange={(event) => choose({ search: event.target.value })}
        />
      </label>
      <label className="field">
        <span>{words.likeliest}</span>
        <select value={now.likeliest} onChange={(event) => choose({ likeliest: event.target.value })}>
          <option value="">{words.anyClass}</option>
          {classes.map((name) => (
            <option key={name} value={name}>
              {readable(name)}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>{words.view}</span>
        <select value={now.view} onChange={(event) => choose({ view: event.target.value })}>
          <option value="">{words.anyView}</option>
          {VIEWS.map((view) => (
            <option key={view} value={view}>
              {words.views[view]}
            </option>
          ))}
        </select>
      </label>
      <label className="tick">
        <input
          type="checkbox"
          checked={now.unread}
          onChange={(event) => choose({ unread: event.target.checked })}
        />
        {words.unread}
      </label>
      <label className="tick">
        <input
          type="checkbox"
          checked={now.mine}
          onChange={(event) => choose({ mine: event.target.checked })}
        />
        {words.mine}
      </label>
      {isNarrowed(now) && (
        <button type="button" className="plain" onClick={() => filters.set(ALL)}>
          {words.reset}
        </button>
      )}
    </form>
  );
}

/** Those of the model in use; and the one that is chosen, should another model be in use by now. */
function useClasses(chosen: string): string[] {
  const models = useQuery(modelsQuery);
  const used = models.data?.find((model) => model.in_use)?.version ?? "";
  const card = useQuery({ ...modelQuery(used), enabled: used !== "" });
  const classes = [...(card.data?.classes ?? [])];
  return chosen === "" || classes.includes(chosen) ? classes : [...classes, chosen];
}
