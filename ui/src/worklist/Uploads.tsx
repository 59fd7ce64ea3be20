import { Problem } from "../api/problems";
import { share } from "../parts/format";
import { useStore } from "../parts/store";
import { reasonOf } from "../parts/Trouble";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";
import { hasEnded, type Upload } from "./queue";
import { queue, tally } from "./uploads";

const MOST_SHOWN = 200;

/** How far every upload is. */
export function Uploads() {
  const words = useWords().worklist;
  const uploads = useStore(queue.uploads);
  if (uploads.length === 0) return null;
  const { total, ended, refused, arrived } = tally(uploads);
  return (
    <section className="card uploads" aria-labelledby="uploads-title">
      <header className="row">
        <h2 id="uploads-title">{words.uploads}</h2>
        <span role="status" className="quiet">
          {words.progress(ended, total)}
          {arrived > 0 && ` · ${words.arrived(arrived)}`}
          {refused > 0 && ` · ${words.refused(refused)}`}
        </span>
        <span className="grow" />
        {ended < total && (
          <button type="button" onClick={queue.stop}>
            {words.stop}
          </button>
        )}
        {ended > 0 && (
          <button type="button" onClick={queue.clear}>
            {words.clear}
          </button>
        )}
      </header>
      <ul>
        {shown(uploads).map((upload) => (
          <UploadRow key={upload.id} upload={upload} />
        ))}
      </ul>
    </section>
  );
}

/** What goes on and what went wrong first; a thousand rows help nobody. */
function shown(uploads: readonly Upload[]): readonly Upload[] {
  return [...uploads].sort((one, other) => rank(one) - rank(other)).slice(0, MOST_SHOWN);
}

function rank({ state }: Upload): number {
  if (state === "refused" || state === "unreadable") return 0;
  if (state === "waiting") return 2;
  return state === "done" || state === "known" || state === "stopped" ? 3 : 1;
}

function UploadRow({ upload }: { upload: Upload }) {
  const words = useWords().worklist;
  const { language } = useStore(settings);
  const goesOn = !hasEnded(upload);
  return (
    <li className={`upload ${upload.state}`}>
      <span className="upload-name">{upload.name}</span>
      {goesOn ? (
        <progress
          aria-label={upload.name}
          value={upload.state === "reading" ? undefined : upload.sent}
          max={1}
        />
      ) : (
        <Mark upload={upload} />
      )}
      <span className="upload-state small">
        <Told upload={upload} />
        {upload.state === "sending" && ` ${share(upload.sent, { language, shares: "percent" })}`}
      </span>
      {upload.film !== null && (
        <a href={`#/films/${upload.film}`} aria-label={`${words.openFilm}: ${upload.name}`}>
          {words.openFilm}
        </a>
      )}
    </li>
  );
}

function Told({ upload }: { upload: Upload }) {
  const all = useWords();
  if (upload.state !== "refused") return all.worklist.states[upload.state];
  const known = all.common.problems[upload.code];
  // The server's sentence says more than ours can, in whatever language it has.
  return (
    <>
      {known ?? ""} <span lang="en">{reasonOf(new Problem(0, "", upload.detail), all)}</span>
    </>
  );
}

function Mark({ upload }: { upload: Upload }) {
  const marks = { done: "✓", known: "✓", refused: "✕", unreadable: "✕", stopped: "–" } as Record<
    string,
    string
  >;
  return (
    <span className="upload-mark" aria-hidden="true">
      {marks[upload.state]}
    </span>
  );
}
