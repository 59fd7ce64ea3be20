import { useMutation } from "@tanstack/react-query";

import { client, told } from "../api/client";
import { useStore } from "../parts/store";
import { Trouble } from "../parts/Trouble";
import { surroundings } from "../reading/DoubtDialog";
import { useWords } from "../words/words";
import { Learning } from "./Learning";
import { Learnt } from "./Learnt";
import { canLearn, type Example, lesson, NOTHING, shortName } from "./lesson";

interface Props {
  /** The model that learns. */
  model: string;
  onKept: (model: string) => void;
}

/** From a name, a sentence and some boxes to a finding that the model can point at. */
export function TeachPanel(props: Props) {
  const words = useWords();
  const now = useStore(lesson);
  return (
    <section className="block teach" aria-labelledby="teach">
      <div className="row spread">
        <h2 id="teach">{now.learnt ? words.teaching.learntTitle(now.title) : words.teaching.title}</h2>
        {!now.learnt && now.job === null && (
          <button
            type="button"
            className="plain"
            aria-label={words.common.close}
            onClick={() => lesson.set({ ...now, open: false })}
          >
            ✕
          </button>
        )}
      </div>
      {now.learnt ? (
        <Learnt {...props} learnt={now.learnt} />
      ) : now.job ? (
        <Learning job={now.job} />
      ) : (
        <Gathering model={props.model} />
      )}
    </section>
  );
}

function Gathering({ model }: { model: string }) {
  const words = useWords().teaching;
  const now = useStore(lesson);
  const name = shortName(now.title);
  const teaching = useMutation({
    mutationFn: () =>
      told(
        client.POST("/api/v1/concepts", {
          body: {
            name,
            title: now.title.trim(),
            description: now.description.trim(),
            examples: now.examples.map(({ film, box }) => ({ film, box })),
            model,
            seed: 0,
          },
        }),
      ),
    onSuccess: (job) => lesson.set((later) => ({ ...later, job: job.id })),
  });
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (canLearn(now)) teaching.mutate();
      }}
    >
      <p className="quiet">{words.about}</p>
      <label className="field">
        <span>{words.name}</span>
        <input
          value={now.title}
          maxLength={100}
          placeholder={words.namePlaceholder}
          onChange={(event) => lesson.set({ ...now, title: event.target.value })}
        />
      </label>
      {name && <p className="quiet small">{words.called(name)}</p>}
      <label className="field">
        <span>{words.description}</span>
        <textarea
          rows={2}
          maxLength={1000}
          value={now.description}
          placeholder={words.descriptionPlaceholder}
          onChange={(event) => lesson.set({ ...now, description: event.target.value })}
        />
      </label>
      <Examples examples={now.examples} />
      {teaching.isError && <Trouble error={teaching.error} />}
      <div className="row end">
        <DropAll />
        <button type="submit" className="primary" disabled={!canLearn(now) || teaching.isPending}>
          {words.learn}
        </button>
      </div>
    </form>
  );
}

function DropAll() {
  const words = useWords().common;
  return (
    <button type="button" onClick={() => lesson.set(NOTHING)}>
      {words.cancel}
    </button>
  );
}

function Examples({ examples }: { examples: readonly Example[] }) {
  const words = useWords().teaching;
  const drop = (place: number) =>
    lesson.set((now) => ({ ...now, examples: now.examples.filter((_, other) => other !== place) }));
  return (
    <div className="stack">
      <h3>{words.examples}</h3>
      {examples.length === 0 && <p className="quiet">{words.noExamples}</p>}
      <ul className="exemplars">
        {examples.map((one, place) => (
          <li key={`${one.film} ${place}`}>
            <ExamplePicture one={one} label={words.example(place + 1, one.film.slice(0, 8))} />
            <button
              type="button"
              className="plain"
              aria-label={words.removeExample(place + 1)}
              onClick={() => drop(place)}
            >
              ✕
            </button>
          </li>
        ))}
      </ul>
      {examples.length > 0 && <p className="quiet small">{words.otherFilms}</p>}
    </div>
  );
}

function ExamplePicture({ one, label }: { one: Example; label: string }) {
  const { width, height } = one.size;
  const view = surroundings(one.box, width, height);
  return (
    <svg
      className="patch-picture"
      viewBox={`${view.x} ${view.y} ${view.width} ${view.height}`}
      role="img"
      aria-label={label}
    >
      <image
        href={`/api/v1/films/${one.film}/picture.png?side=512`}
        width={width}
        height={height}
        preserveAspectRatio="none"
      />
      <rect
        className="patch-outline"
        x={one.box.x1}
        y={one.box.y1}
        width={one.box.x2 - one.box.x1}
        height={one.box.y2 - one.box.y1}
        strokeWidth={view.width / 60}
      />
    </svg>
  );
}
