import { useWords } from "../words/words";

/** What one should know before trusting the film or the model. */
export function Notes({ notes }: { notes: readonly string[] }) {
  const words = useWords().reading;
  if (notes.length === 0) return null;
  return (
    <section className="block notes" aria-labelledby="notes">
      <h2 id="notes">{words.takeNote}</h2>
      <ul>
        {notes.map((note) => (
          <li key={note} lang="en">
            {note}
          </li>
        ))}
      </ul>
    </section>
  );
}
