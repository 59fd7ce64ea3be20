import { Dialog } from "../parts/Dialog";
import { useStore } from "../parts/store";
import { settings } from "../settings/settings";
import { useWords } from "../words/words";

/** Every key, and what it does. */
export function KeysDialog({ onClose }: { onClose: () => void }) {
  const words = useWords().reading;
  const { keys } = useStore(settings);
  return (
    <Dialog title={words.keysTitle} onClose={onClose} wide>
      {!keys && <p className="verdict warned">{words.keysOff}</p>}
      <dl className="keys">
        {words.keysList.map(([key, does]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
