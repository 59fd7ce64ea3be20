import { download } from "../parts/download";
import { SaveMenu } from "../parts/SaveMenu";
import { useStore } from "../parts/store";
import { useWords } from "../words/words";
import { useSitting } from "./sitting";

const FILES = {
  png: "evidence.png",
  pdf: "reading.pdf",
  json: "reading.json",
} as const;

/** Three ways to take a reading along. */
export function Export() {
  const words = useWords().reading;
  const { desk, reading } = useSitting();
  const back = useStore(desk.back);
  const { study } = reading;
  if (!study) return null;
  const kinds = ["png", "pdf", "json"] as const;
  return (
    <SaveMenu
      label={words.export}
      ways={kinds.map((kind) => [kind, words.exports[kind]] as const)}
      save={(kind) => {
        const at = back === null ? "" : `?at=${back}`;
        return download(`/api/v1/studies/${study.id}/${FILES[kind]}${at}`, `medgrape-${desk.film}.${kind}`);
      }}
    />
  );
}
