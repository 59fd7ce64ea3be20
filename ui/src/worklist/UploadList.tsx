import { Problem } from "../api/problems";
import { errorText } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { formatProbability } from "../lib/format";
import { useStore } from "../lib/store";
import { settings } from "../settings/settings";
import { isFinished, type Upload } from "./uploadQueue";
import { countUploads, uploadQueue } from "./uploads";

const MOST_SHOWN = 200;

/** Progress of all uploads. */
export function UploadList() {
  const words = useWords().worklist;
  const uploads = useStore(uploadQueue.uploads);
  if (uploads.length === 0) return null;
  const { total, ended, refused, arrived } = countUploads(uploads);
  return (
    <section className="card uploads" aria-labelledby="uploads-title">
      <header className="row">
        <h2 id="uploads-title">{words.uploads}</h2>
        <span role="status" className="muted">
          {words.progress(ended, total)}
          {arrived > 0 && ` · ${words.arrived(arrived)}`}
          {refused > 0 && ` · ${words.refused(refused)}`}
        </span>
        <span className="grow" />
        {ended < total && (
          <button type="button" onClick={uploadQueue.stop}>
            {words.stop}
          </button>
        )}
        {ended > 0 && (
          <button type="button" onClick={uploadQueue.clear}>
            {words.clear}
          </button>
        )}
      </header>
      <ul>
        {mostRelevant(uploads).map((upload) => (
          <UploadRow key={upload.id} upload={upload} />
        ))}
      </ul>
    </section>
  );
}

/** Failed and running uploads first; the list is limited. */
function mostRelevant(uploads: readonly Upload[]): readonly Upload[] {
  return [...uploads].sort((a, b) => rank(a) - rank(b)).slice(0, MOST_SHOWN);
}

function rank({ state }: Upload): number {
  if (state === "refused" || state === "unreadable") return 0;
  if (state === "waiting") return 2;
  return state === "done" || state === "known" || state === "stopped" ? 3 : 1;
}

function UploadRow({ upload }: { upload: Upload }) {
  const words = useWords().worklist;
  const { language } = useStore(settings);
  const isRunning = !isFinished(upload);
  return (
    <li className={`upload ${upload.state}`}>
      <span className="upload-name">{upload.name}</span>
      {isRunning ? (
        <progress
          aria-label={upload.name}
          value={upload.state === "reading" ? undefined : upload.sentShare}
          max={1}
        />
      ) : (
        <UploadMark upload={upload} />
      )}
      <span className="upload-state small">
        <UploadStateText upload={upload} />
        {upload.state === "sending" &&
          ` ${formatProbability(upload.sentShare, { language, shares: "percent" })}`}
      </span>
      {upload.film !== null && (
        <a href={`#/films/${upload.film}`} aria-label={`${words.openFilm}: ${upload.name}`}>
          {words.openFilm}
        </a>
      )}
    </li>
  );
}

function UploadStateText({ upload }: { upload: Upload }) {
  const all = useWords();
  if (upload.state !== "refused") return all.worklist.states[upload.state];
  const known = all.common.problems[upload.code];
  // The server's message has more details than the page's translation, so show both.
  return (
    <>
      {known ?? ""} <span lang="en">{errorText(new Problem(0, "", upload.detail), all)}</span>
    </>
  );
}

function UploadMark({ upload }: { upload: Upload }) {
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
