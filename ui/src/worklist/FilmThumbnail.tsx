import { useEffect, useState } from "react";

const RETRY_AFTER = 3000;
const MAX_ATTEMPTS = 100;

/** Thumbnail of a film. Browsers do not retry a failed picture, so this component does. */
export function FilmThumbnail({ film, side, alt }: { film: string; side: number; alt: string }) {
  const [attempts, setTries] = useState(0);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!failed || attempts >= MAX_ATTEMPTS) return;
    const timer = setTimeout(() => {
      setTries(attempts + 1);
      setFailed(false);
    }, RETRY_AFTER);
    return () => clearTimeout(timer);
  }, [failed, attempts]);
  if (failed) return <span className="no-preview" style={{ width: side, height: side }} />;
  return (
    <img
      key={attempts}
      src={`/api/v1/films/${film}/preview.png`}
      alt={alt}
      loading="lazy"
      width={side}
      height={side}
      onError={() => setFailed(true)}
    />
  );
}
