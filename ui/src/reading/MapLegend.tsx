import { useQuery } from "@tanstack/react-query";

import { pictureQuery } from "../api/sharedQueries";
import { conceptOnMap } from "../film/viewerState";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { teachingState } from "../teaching/teachingState";
import { conceptTitle } from "./conceptDisplay";
import { useReadingContext } from "./ReadingContext";

/** Name, kind, colour scale and opacity of the map on the film. */
export function MapLegend({ mapAddress }: { mapAddress: string | null }) {
  const words = useWords().reading;
  const { viewer, studyData } = useReadingContext();
  const selection = useStore(viewer.selection);
  const { learnt, mapShown, title } = useStore(teachingState);
  const concept = conceptOnMap(selection);
  const picture = useQuery({ ...pictureQuery(mapAddress ?? ""), enabled: mapAddress !== null });
  const known = concept === null ? words.noMap : conceptTitle(studyData, concept, words);
  const [low, high] = words.scaleEnds[selection.kind];
  return (
    <section className="legend" aria-label={words.map}>
      <strong>{learnt && mapShown && selection.hovered === null ? title : known}</strong>
      {mapAddress !== null && picture.isError && <span className="verdict warned">{words.mapFailed}</span>}
      <select
        aria-label={words.map}
        value={selection.kind}
        onChange={(event) =>
          viewer.selection.set({
            ...selection,
            kind: event.target.value === "mean" ? "mean" : "disagreement",
          })
        }
      >
        <option value="mean">{words.mean}</option>
        <option value="disagreement">{words.disagreement}</option>
      </select>
      <span className="muted small">{low}</span>
      <span className={`scale ${selection.kind}`} aria-hidden="true" />
      <span className="muted small">{high}</span>
      <label className="row opacity">
        <span className="muted small">{words.opacity}</span>
        <input
          type="range"
          min={0}
          max={1}
          step={0.05}
          value={selection.opacity}
          onChange={(event) => viewer.selection.set({ ...selection, opacity: Number(event.target.value) })}
        />
      </label>
    </section>
  );
}
