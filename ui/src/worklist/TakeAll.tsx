import { may, session } from "../api/session";
import { download } from "../parts/download";
import { SaveMenu } from "../parts/SaveMenu";
import { useStore } from "../parts/store";
import { useWords } from "../words/words";

const FILES = {
  coco: ["boxes/export?format=coco", "medgrape-boxes.json"],
  csv: ["boxes/export?format=csv", "medgrape-boxes.csv"],
  readings: ["readings/export", "medgrape-readings.csv"],
} as const;

/** All that people drew and read in the room, for other programs; of everybody, so it takes a curator. */
export function TakeAll() {
  const words = useWords().worklist;
  const { me } = useStore(session);
  if (!may(me, "curator")) return null;
  return (
    <SaveMenu
      label={words.takeAll}
      ways={[
        ["coco", words.all.coco],
        ["csv", words.all.csv],
        ["readings", words.all.readings],
      ]}
      save={(way) => download(`/api/v1/${FILES[way][0]}`, FILES[way][1], { method: "POST" })}
    />
  );
}
