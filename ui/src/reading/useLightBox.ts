/** Everything that happens at the light box, gathered for what shows it. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { pictureQuery } from "../api/queries";
import { may, session } from "../api/session";
import type { Study } from "../api/types";
import { fitted, type Size, zoomed } from "../film/view";
import { useStore } from "../parts/store";
import { isGathering, lesson } from "../teaching/lesson";
import { type Desk, type Edit, mapped } from "../film/desk";
import { LiveCheck } from "./liveCheck";
import type { Sitting } from "./sitting";
import { useActs } from "./useActs";
import { decided, useDoubt } from "./useDoubt";
import { useKeys } from "./useKeys";
import { type Reading, useStep } from "./useReading";

/** The person, the film and what they do with it. */
export function useSittingAt(desk: Desk, reading: Reading, version: string | undefined) {
  const { me } = useStore(session);
  const back = useStore(desk.back);
  const teaching = useStore(lesson);
  const locked = back !== null || reading.study?.reader !== me?.name;
  const live = useLiveCheck(reading.study?.id);
  const { doubt, setDoubt } = useDoubt(desk, live, locked);
  const { step, mutation } = useStep(reading, version, setDoubt);
  const busy = mutation.isPending;
  const acts = useActs({ desk, reading, step, locked, busy });
  useFirstChoice(desk, reading);
  useLettingGo(desk, setDoubt, reading.study);
  useEffect(() => desk.teaching.set(isGathering(teaching)), [desk, teaching]);
  const retrying = busy && mutation.failureCount > 0;
  const sitting: Sitting = { desk, reading, acts, step, busy, retrying, live, locked };
  const decide = (decision: { concept: string } | { reason: string }) => {
    if (!doubt) return;
    const edit = desk.edit.get();
    setDoubt(null);
    step(decided(doubt, decision), () => desk.edit.set((now) => (now === edit ? null : now)));
  };
  const settling = doubt && {
    doubt,
    onCancel: () => {
      setDoubt(null);
      mutation.reset();
      desk.edit.set(null);
    },
    onChange: (concept: string) => decide({ concept }),
    onConfirm: (reason: string) => decide({ reason }),
  };
  return { sitting, settling, trouble: busy ? null : mutation.error, forget: () => mutation.reset() };
}

/** The room that the film has, and keys for all that can be done in it. */
export function useFilmRoom({ desk, reading, acts }: Sitting, size: Size, turn: (by: 1 | -1) => void) {
  const { me } = useStore(session);
  const place = useRef<HTMLDivElement>(null);
  const [keysOpen, setKeysOpen] = useState(false);
  const room = useCallback(
    () => ({ width: place.current?.clientWidth ?? 1, height: place.current?.clientHeight ?? 1 }),
    [],
  );
  const zoom = useCallback(
    (factor: number) => {
      const at = { x: room().width / 2, y: room().height / 2 };
      desk.view.set(zoomed(desk.view.get() ?? fitted(size, room()), factor, at, size, room()));
    },
    [desk, size, room],
  );
  const example = useCallback(
    (edit: Edit) => {
      const one = { film: desk.film, size, box: edit.box };
      lesson.set((now) => ({ ...now, examples: [...now.examples, one] }));
      desk.edit.set(null);
    },
    [desk, size],
  );
  const teach = may(me, "curator") ? () => lesson.set((now) => ({ ...now, open: true })) : null;
  const openKeys = () => setKeysOpen(true);
  const onExample = () => {
    const edit = desk.edit.get();
    if (edit) example(edit);
  };
  useKeys({
    desk,
    reading,
    acts,
    size,
    room,
    zoom,
    turn,
    onKeys: openKeys,
    onTeach: () => teach?.(),
    onExample,
  });
  return { place, zoom, example, teach, keysOpen, openKeys, closeKeys: () => setKeysOpen(false) };
}

function useLiveCheck(study: string | undefined): LiveCheck | null {
  const live = useMemo(() => (study ? new LiveCheck(study) : null), [study]);
  useEffect(() => {
    live?.begin();
    return () => live?.end();
  }, [live]);
  return live;
}

/** Once a study moved on, the number of the box in hand may be another's, and a doubt was about how it stood before. */
function useLettingGo(desk: Desk, setDoubt: (doubt: null) => void, study: Study | undefined): void {
  const [id, revision] = [study?.id, study?.revision];
  useEffect(() => {
    setDoubt(null);
    const edit = desk.edit.get();
    if (edit && edit.number !== null) desk.edit.set(null);
  }, [desk, setDoubt, id, revision]);
  useEffect(() => desk.back.set(null), [desk, id]);
}

/** The finding that stands out most is chosen until somebody chooses. */
function useFirstChoice(desk: Desk, reading: Reading): void {
  const first = reading.explanation?.concepts[0]?.name;
  const { concepts } = reading;
  useEffect(() => {
    const { concept } = desk.choice.get();
    const unknown = concepts.length > 0 && !concepts.some((one) => one.name === concept);
    if (first && (concept === null || unknown)) desk.choice.set((now) => ({ ...now, concept: first }));
    const edit = desk.edit.get();
    if (edit && concepts.length > 0 && !concepts.some((one) => one.name === edit.concept))
      desk.edit.set(null);
  }, [desk, first, concepts]);
}

const MAP_SIDE = 512;

/** Where the map is that lies on the film; those of the other findings are fetched ahead. */
export function useMap({ desk, reading }: Sitting): string | null {
  const { kind, ...choice } = useStore(desk.choice);
  const { learnt, shown: newOne } = useStore(lesson);
  const queries = useQueryClient();
  const { shown, explanation } = reading;
  const study = shown && `/api/v1/studies/${shown.id}`;
  const asked = `kind=${kind}&side=${MAP_SIDE}&at=${shown?.at ?? 0}`;
  useEffect(() => {
    if (!study) return;
    for (const { name } of explanation?.concepts ?? []) {
      queries.query(pictureQuery(`${study}/maps/${name}.png?${asked}`)).catch(() => undefined);
    }
  }, [queries, study, asked, explanation]);
  if (learnt && newOne && choice.hovered === null) {
    return `/api/v1/films/${desk.film}/maps/${learnt.concept}.png?model=${learnt.model}&kind=${kind}&side=${MAP_SIDE}`;
  }
  const concept = mapped({ kind, ...choice });
  const known = explanation?.concepts.some((one) => one.name === concept) ?? false;
  return study && known && concept !== null ? `${study}/maps/${concept}.png?${asked}` : null;
}
