import { useMutation } from "@tanstack/react-query";

import { client, unwrap } from "../api/client";
import { ErrorMessage } from "../components/ErrorMessage";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import { cropAround } from "../reading/MismatchDialog";
import { TeachingProgress } from "./TeachingProgress";
import { TeachingResult } from "./TeachingResult";
import { canTeach, conceptName, type Example, NOT_TEACHING, teachingState } from "./teachingState";

interface Props {
  /** Version of the model to teach. */
  model: string;
  onKept: (model: string) => void;
}

/** Teaches the model a new finding from a name, a sentence and example boxes. */
export function TeachPanel(props: Props) {
  const words = useWords();
  const state = useStore(teachingState);
  return (
    <section className="block teach" aria-labelledby="teach">
      <div className="row spread">
        <h2 id="teach">{state.learnt ? words.teaching.learntTitle(state.title) : words.teaching.title}</h2>
        {!state.learnt && state.job === null && (
          <button
            type="button"
            className="plain"
            aria-label={words.common.close}
            onClick={() => teachingState.set({ ...state, open: false })}
          >
            ✕
          </button>
        )}
      </div>
      {state.learnt ? (
        <TeachingResult {...props} learnt={state.learnt} />
      ) : state.job ? (
        <TeachingProgress job={state.job} />
      ) : (
        <TeachForm model={props.model} />
      )}
    </section>
  );
}

function TeachForm({ model }: { model: string }) {
  const { teaching: words, common } = useWords();
  const state = useStore(teachingState);
  const name = conceptName(state.title);
  const teachMutation = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST("/api/v1/concepts", {
          body: {
            name,
            title: state.title.trim(),
            description: state.description.trim(),
            examples: state.examples.map(({ film, box }) => ({ film, box })),
            model,
            seed: 0,
          },
        }),
      ),
    onSuccess: (job) => teachingState.set((later) => ({ ...later, job: job.id })),
  });
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (canTeach(state)) teachMutation.mutate();
      }}
    >
      <p className="muted">{words.about}</p>
      <label className="field">
        <span>{words.name}</span>
        <input
          value={state.title}
          maxLength={100}
          placeholder={words.namePlaceholder}
          onChange={(event) => teachingState.set({ ...state, title: event.target.value })}
        />
      </label>
      {name && <p className="muted small">{words.identifier(name)}</p>}
      <label className="field">
        <span>{words.description}</span>
        <textarea
          rows={2}
          maxLength={1000}
          value={state.description}
          placeholder={words.descriptionPlaceholder}
          onChange={(event) => teachingState.set({ ...state, description: event.target.value })}
        />
      </label>
      <Examples examples={state.examples} />
      {teachMutation.isError && <ErrorMessage error={teachMutation.error} />}
      <div className="row end">
        <button type="button" onClick={() => teachingState.set(NOT_TEACHING)}>
          {common.cancel}
        </button>
        <button type="submit" className="primary" disabled={!canTeach(state) || teachMutation.isPending}>
          {words.learn}
        </button>
      </div>
    </form>
  );
}

function Examples({ examples }: { examples: readonly Example[] }) {
  const words = useWords().teaching;
  const drop = (index: number) =>
    teachingState.set((current) => ({
      ...current,
      examples: current.examples.filter((_, other) => other !== index),
    }));
  return (
    <div className="stack">
      <h3>{words.examples}</h3>
      {examples.length === 0 && <p className="muted">{words.noExamples}</p>}
      <ul className="exemplars">
        {examples.map((example, index) => (
          <li key={`${example.film} ${index}`}>
            <ExamplePicture example={example} label={words.example(index + 1, example.film.slice(0, 8))} />
            <button
              type="button"
              className="plain"
              aria-label={words.removeExample(index + 1)}
              onClick={() => drop(index)}
            >
              ✕
            </button>
          </li>
        ))}
      </ul>
      {examples.length > 0 && <p className="muted small">{words.otherFilms}</p>}
    </div>
  );
}

function ExamplePicture({ example, label }: { example: Example; label: string }) {
  const { width, height } = example.size;
  const view = cropAround(example.box, width, height);
  return (
    <svg
      className="patch-picture"
      viewBox={`${view.x} ${view.y} ${view.width} ${view.height}`}
      role="img"
      aria-label={label}
    >
      <image
        href={`/api/v1/films/${example.film}/picture.png?side=512`}
        width={width}
        height={height}
        preserveAspectRatio="none"
      />
      <rect
        className="patch-outline"
        x={example.box.x1}
        y={example.box.y1}
        width={example.box.x2 - example.box.x1}
        height={example.box.y2 - example.box.y1}
        strokeWidth={view.width / 60}
      />
    </svg>
  );
}
