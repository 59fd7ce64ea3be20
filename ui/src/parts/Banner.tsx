import { connection } from "../api/connection";
import { useWords } from "../words/words";
import { useStore } from "./store";

/** Told at the top of every screen while the server does not answer. */
export function Banner() {
  const words = useWords();
  const { lost } = useStore(connection);
  return (
    <div role="status" className={lost ? "banner lost" : "banner"}>
      {lost && words.common.lost}
    </div>
  );
}
