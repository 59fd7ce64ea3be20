import { download } from "../parts/download";
import { SaveMenu } from "../parts/SaveMenu";
import { useStore } from "../parts/store";
import { useWords } from "../words/words";
import { useSitting } from "./sitting";

const FILES = {
  png: "evidence.png",
  pdf: "reading.pdf",
  json: "reading.json",
  "dcm.zip": "reading.dcm.zip",
} as const;
const KINDS = ["png", "pdf", "json", "dcm.zip"] as const;

/** Ways to take a reading along. DICOM is about a DICOM film, so one that came as a picture has no such reading. */
export function Export() {
  const words = useWords().reading;
  const { desk, reading } = useSitting();
  const back = useStore(desk.back);
  const { study, film } = reading;
  if (!study) return null;
  const impossible = film?.facts.format === "DICOM" ? {} : { "dcm.zip": words.noDicom };
  return (
    <SaveMenu
      label={words.export}
      ways={KINDS.map((kind) => [kind, words.exports[kind]] as const)}
      impossible={impossible}
      save={(kind) => {
        const at = back === null ? "" : `?at=${back}`;
        return download(`/api/v1/studies/${study.id}/${FILES[kind]}${at}`, `medgrape-${desk.film}.${kind}`);
      }}
    />
  );
}
