import { useQuery } from "@tanstack/react-query";

import { pictureQuery } from "../api/queries";
import { useStore } from "../parts/store";
import { lesson } from "../teaching/lesson";
import { useWords } from "../words/words";
import { mapped } from "../film/desk";
import { titleOf, useSitting } from "./sitting";

/** What the colours on the film mean. */
export function MapLegend({ map }: { map: string | null }) {
  const words = useWords().reading;
  const { desk, reading } = useSitting();
  const choice = useStore(desk.choice);
  const { learnt, shown, title } = useStore(lesson);
  const concept = mapped(choice);
  const laid = useQuery({ ...pictureQuery(map ?? ""), enabled: map !== null });
  const known = concept === null ? words.noMap : titleOf(reading, concept, words);
  const [low, high] = words.fromTo[choice.kind];
  return (
    <section className="legend" aria-label={words.map}>
      <strong>{learnt && shown && choice.hovered === null ? title : known}</strong>
      {map !== null && laid.isError && <span className="verdict warned">{words.mapFailed}</span>}
      <select
        aria-label={words.map}
        value={choice.kind}
        onChange={(event) =>
          desk.choice.set({ ...choice, kind: event.target.value === "mean" ? "mean" : "disagreement" })
        }
      >
        <option value="mean">{words.mean}</option>
        <option value="disagreement">{words.disagreement}</option>
      </select>
      <span className="quiet small">{low}</span>
      <span className={`scale ${choice.kind}`} aria-hidden="true" />
      <span className="quiet small">{high}</span>
      <label className="row opacity">
        <span className="quiet small">{words.opacity}</span>
        <input
          type="range"
          min={0}
          max={1}
          step={0.05}
          value={choice.opacity}
          onChange={(event) => desk.choice.set({ ...choice, opacity: Number(event.target.value) })}
        />
      </label>
    </section>
  );
}
