import { hasRole, session } from "../api/session";
import { DownloadMenu } from "../components/DownloadMenu";
import { useWords } from "../i18n/words";
import { download } from "../lib/download";
import { useStore } from "../lib/store";

const FILES = {
  coco: ["boxes/export?format=coco", "medgrape-boxes.json"],
  csv: ["boxes/export?format=csv", "medgrape-boxes.csv"],
  readings: ["readings/export", "medgrape-readings.csv"],
} as const;

/** Export the boxes and readings of all users. Curators only. */
export function ExportAllMenu() {
  const words = useWords().worklist;
  const { me } = useStore(session);
  if (!hasRole(me, "curator")) return null;
  return (
    <DownloadMenu
      label={words.exportAll}
      formats={[
        ["coco", words.exportFormats.coco],
        ["csv", words.exportFormats.csv],
        ["readings", words.exportFormats.readings],
      ]}
      save={(way) => download(`/api/v1/${FILES[way][0]}`, FILES[way][1], { method: "POST" })}
    />
  );
}
