import { useStore } from "../parts/store";
import { useWords } from "../words/words";
import { ALL, filters, type Filters, isNarrowed } from "./filters";

/** Narrows the log down. */
export function FilterBar() {
  const words = useWords().audit;
  const now = useStore(filters);
  const field = (name: keyof Filters, type: "text" | "date", hint?: string) => (
    <label className="field">
      <span>{words[name]}</span>
      <input
        type={type}
        value={now[name]}
        placeholder={hint}
        maxLength={64}
        spellCheck={false}
        autoCapitalize="none"
        onChange={(event) => filters.set((old) => ({ ...old, [name]: event.target.value }))}
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
          value={now.kind}
          onChange={(event) => filters.set((old) => ({ ...old, kind: event.target.value }))}
        >
          <option value="">{words.anyKind}</option>
          {Object.entries(words.kinds).map(([kind, told]) => (
            <option key={kind} value={kind}>
              {told}
            </option>
          ))}
        </select>
      </label>
      {field("film", "text", words.idHint)}
      {field("study", "text", words.idHint)}
      {field("since", "date")}
      {field("until", "date")}
      {isNarrowed(now) && (
        <button type="button" className="plain" onClick={() => filters.set(ALL)}>
          {words.reset}
        </button>
      )}
    </form>
  );
}
