import { may, session } from "../api/session";
import { download } from "../parts/download";
import { SaveMenu } from "../parts/SaveMenu";
import { useStore } from "../parts/store";
import { useWords } from "../words/words";

const FILES = { coco: "medgrape-boxes.json", csv: "medgrape-boxes.csv" } as const;

/** All that people drew in the room, for other programs; of everybody, so it takes a curator. */
export function TakeBoxes() {
  const words = useWords().worklist;
  const { me } = useStore(session);
  if (!may(me, "curator")) return null;
  return (
    <SaveMenu
      label={words.boxes}
      ways={[
        ["coco", words.boxesAs.coco],
        ["csv", words.boxesAs.csv],
      ]}
      save={(way) => download(`/api/v1/boxes/export?format=${way}`, FILES[way], { method: "POST" })}
    />
  );
}
