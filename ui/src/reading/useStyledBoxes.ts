/** Colour, line and label of the boxes on the film. Dashed: the finding is not here, or the box is only suggested. */
import { useCallback, useMemo } from "react";

import type { StyledBox } from "../film/FilmStage";
import type { BoxDraft } from "../film/viewerState";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { isCollectingExamples, teachingState } from "../teaching/teachingState";
import { conceptColour, conceptTitle } from "./conceptDisplay";
import type { ReadingContextValue } from "./ReadingContext";
import type { Suggestion } from "./SuggestionCard";

const EXAMPLE_COLOUR = "#F0E442";
const SUGGESTION_COLOUR = "#FFFFFF";

export function useStyledBoxes({ viewer, studyData }: ReadingContextValue, suggestion: Suggestion | null) {
  const words = useWords().reading;
  const teaching = useStore(teachingState);
  const editedIndex = useStore(viewer.draft)?.correctionIndex ?? null;
  const { shownStudy, concepts } = studyData;
  const collecting = isCollectingExamples(teaching);
  const exampleLabel = teaching.title || "★";

  const styleStatement = useCallback(
    ({
      box,
      concept,
      positive,
    }: Pick<BoxDraft, "box" | "positive"> & { concept: string | null }): StyledBox => {
      const title = conceptTitle(studyData, concept, words);
      return {
        box,
        positive,
        colour: conceptColour(studyData, concept),
        label: positive ? title : `${title}: ${words.isNotHere}`,
      };
    },
    // eslint-disable-next-line react-hooks/exhaustive-deps -- uses nothing of studyData but its concepts
    [concepts, words],
  );
  const styleExample = useCallback(
    (box: BoxDraft["box"]): StyledBox => ({
      box,
      positive: true,
      colour: EXAMPLE_COLOUR,
      label: exampleLabel,
    }),
    [exampleLabel],
  );

  const boxes = useMemo(() => {
    const corrections = (shownStudy?.corrections ?? []).flatMap(({ box, concept, kind }, index) => {
      if (!box || index === editedIndex) return [];
      const styledBox = styleStatement({ box, concept: concept ?? null, positive: kind === "box" });
      return [{ ...styledBox, label: `${index + 1} ${styledBox.label}` }];
    });
    const examples = collecting ? teaching.examples.filter(({ film }) => film === viewer.film) : [];
    return [...corrections, ...examples.map(({ box }) => styleExample(box))];
  }, [shownStudy, editedIndex, collecting, teaching.examples, viewer.film, styleStatement, styleExample]);
  const styleDraft = useCallback(
    (draft: BoxDraft) => (collecting ? styleExample(draft.box) : styleStatement(draft)),
    [collecting, styleExample, styleStatement],
  );
  const suggestedBox = useMemo(
    () =>
      suggestion && {
        box: suggestion.box,
        positive: false,
        colour: SUGGESTION_COLOUR,
        label: words.suggestionTitle,
      },
    [suggestion, words],
  );
  return { boxes, styleDraft, suggestedBox };
}
