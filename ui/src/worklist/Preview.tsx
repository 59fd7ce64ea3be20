import { useEffect, useState } from "react";

const AGAIN_AFTER = 3000;
const MOST_TRIES = 100;

/** A film, small. The browser never asks again for a picture that failed, so that is done here. */
export function Preview({ film, side, alt }: { film: string; side: number; alt: string }) {
  const [tries, setTries] = useState(0);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    if (!failed || tries >= MOST_TRIES) return;
    const waiting = setTimeout(() => {
      setTries(tries + 1);
      setFailed(false);
    }, AGAIN_AFTER);
    return () => clearTimeout(waiting);
  }, [failed, tries]);
  if (failed) return <span className="no-preview" style={{ width: side, height: side }} />;
  return (
    <img
      key={tries}
      src={`/api/v1/films/${film}/preview.png`}
      alt={alt}
      loading="lazy"
      width={side}
      height={side}
      onError={() => setFailed(true)}
    />
  );
}
