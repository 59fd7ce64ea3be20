import { DownloadMenu } from "../components/DownloadMenu";
import { useWords } from "../i18n/words";
import { download } from "../lib/download";
import { useStore } from "../lib/store";
import { useReadingContext } from "./ReadingContext";

const FILES = {
  png: "evidence.png",
  pdf: "reading.pdf",
  json: "reading.json",
  "dcm.zip": "reading.dcm.zip",
} as const;
const KINDS = ["png", "pdf", "json", "dcm.zip"] as const;

/** Export formats of a reading. DICOM export needs a film that was uploaded as DICOM. */
export function ExportMenu() {
  const words = useWords().reading;
  const { viewer, studyData } = useReadingContext();
  const historyStep = useStore(viewer.historyStep);
  const { study, film } = studyData;
  if (!study) return null;
  const impossible = film?.facts.format === "DICOM" ? {} : { "dcm.zip": words.noDicom };
  return (
    <DownloadMenu
      label={words.export}
      formats={KINDS.map((kind) => [kind, words.exports[kind]] as const)}
      unavailable={impossible}
      save={(kind) => {
        const at = historyStep === null ? "" : `?at=${historyStep}`;
        return download(`/api/v1/studies/${study.id}/${FILES[kind]}${at}`, `medgrape-${viewer.film}.${kind}`);
      }}
    />
  );
}
