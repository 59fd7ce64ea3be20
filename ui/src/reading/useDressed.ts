/** How boxes look on the film: coloured by finding, dashed where it is said not to be. */
import { useCallback, useMemo } from "react";

import type { BoxShown } from "../film/FilmStage";
import { useStore } from "../parts/store";
import { isGathering, lesson } from "../teaching/lesson";
import { useWords } from "../words/words";
import type { Edit } from "../film/desk";
import { colourAt } from "./palette";
import { positionOf, type Sitting, titleOf } from "./sitting";
import type { Suggestion } from "./Try";

const EXAMPLE = "#F0E442";
const GHOST = "#FFFFFF";

export function useDressed({ desk, reading }: Sitting, suggestion: Suggestion | null) {
  const words = useWords();
  const teaching = useStore(lesson);
  const edited = useStore(desk.edit)?.number ?? null;
  const { shown, concepts } = reading;
  const boxes = useMemo(() => {
    const drawn = (shown?.corrections ?? []).flatMap((one, number): BoxShown[] => {
      if (!one.box || number === edited) return [];
      const positive = one.kind === "box";
      const title = titleOf(reading, one.concept ?? null, words.reading);
      const label = `${number + 1} ${positive ? title : `${title}: ${words.reading.isNotHere}`}`;
      return [{ box: one.box, positive, colour: colourAt(positionOf(reading, one.concept ?? null)), label }];
    });
    const examples = isGathering(teaching) ? teaching.examples.filter((one) => one.film === desk.film) : [];
    return [
      ...drawn,
      ...examples.map(({ box }): BoxShown => ({
        box,
        positive: true,
        colour: EXAMPLE,
        label: teaching.title || "★",
      })),
    ];
    // eslint-disable-next-line react-hooks/exhaustive-deps -- of the reading, only these two matter
  }, [shown, concepts, edited, teaching, words, desk.film]);
  const gathering = isGathering(teaching);
  const dress = useCallback(
    (edit: Edit): BoxShown => {
      if (gathering) return { box: edit.box, positive: true, colour: EXAMPLE, label: teaching.title || "★" };
      const title = titleOf(reading, edit.concept, words.reading);
      const label = edit.positive ? title : `${title}: ${words.reading.isNotHere}`;
      return {
        box: edit.box,
        positive: edit.positive,
        colour: colourAt(positionOf(reading, edit.concept)),
        label,
      };
    },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- likewise
    [concepts, words, gathering, teaching.title],
  );
  const ghost = useMemo(
    () =>
      suggestion && { box: suggestion.box, positive: false, colour: GHOST, label: words.reading.tryTitle },
    [suggestion, words],
  );
  return { boxes, dress, ghost };
}
