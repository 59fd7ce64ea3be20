import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { type Filters, isFiltered, logFilters, NO_FILTERS } from "./filters";

/** Filters of the audit log. */
export function FilterBar() {
  const words = useWords().audit;
  const filters = useStore(logFilters);
  const field = (name: keyof Filters, type: "text" | "date", hint?: string) => (
    <label className="field">
      <span>{words[name]}</span>
      <input
        type={type}
        value={filters[name]}
        placeholder={hint}
        maxLength={64}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(event) => logFilters.set((old) => ({ ...old, [name]: event.target.value }))}
      />
    </label>
  );
  return (
    <form
      className="filters"
      role="search"
      aria-label={words.filters}
      onSubmit={(event) => event.preventDefault()}
    >
      {field("actor", "text")}
      <label className="field">
        <span>{words.kind}</span>
        <select
          value={filters.kind}
          onChange={(event) => logFilters.set((old) => ({ ...old, kind: event.target.value }))}
        >
          <option value="">{words.anyKind}</option>
          {Object.entries(words.kinds).map(([kind, label]) => (
            <option key={kind} value={kind}>
              {label}
            </option>
          ))}
        </select>
      </label>
      {field("film", "text", words.idHint)}
      {field("study", "text", words.idHint)}
      {field("since", "date")}
      {field("until", "date")}
      {isFiltered(filters) && (
        <button type="button" className="plain" onClick={() => logFilters.set(NO_FILTERS)}>
          {words.reset}
        </button>
      )}
    </form>
  );
}
