import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";

import { pictureQuery } from "../api/queries";
import { may, session } from "../api/session";
import type { Film } from "../api/types";
import { FilmView } from "../film/FilmView";
import { fitted, type Size, zoomed } from "../film/view";
import { useStore } from "../parts/store";
import { isGathering, lesson } from "../teaching/lesson";
import { useWords } from "../words/words";
import { type Desk, type Edit, mapped } from "./desk";
import { DoubtDialog } from "./DoubtDialog";
import { EditCard } from "./EditCard";
import { KeysDialog } from "./KeysDialog";
import { LiveCheck } from "./liveCheck";
import { MapLegend } from "./MapLegend";
import { SidePanel } from "./SidePanel";
import { type Sitting, SittingContext } from "./sitting";
import { Toolbar } from "./Toolbar";
import { type Suggestion, Try } from "./Try";
import { useActs } from "./useActs";
import { decided, useDoubt } from "./useDoubt";
import { useDressed } from "./useDressed";
import { useKeys } from "./useKeys";
import { type Doubt, type Reading, useStep } from "./useReading";
import { StepTrouble } from "./StepTrouble";

interface Props {
  desk: Desk;
  reading: Reading;
  film: Film;
  version: string | undefined;
  suggestion: Suggestion | null;
  turn: (by: 1 | -1) => void;
}

/** The film on the left, what is known of it on the right. */
export function LightBox({ desk, reading, film, version, suggestion, turn }: Props) {
  const words = useWords().reading;
  const { me } = useStore(session);
  const back = useStore(desk.back);
  const teaching = useStore(lesson);
  const [tried, setTried] = useState(false);
  const [keysOpen, setKeysOpen] = useState(false);
  const [, go] = useLocation();
  const place = useRef<HTMLDivElement>(null);
  const size = film.facts.size;
  const locked = back !== null || !reading.study || reading.study.reader !== me?.name;
  const live = useLiveCheck(reading.study?.id);
  const { doubt, setDoubt } = useDoubt(desk, live, locked);
  const { step, mutation } = useStep(reading, version, setDoubt);
  const busy = mutation.isPending;
  const acts = useActs({ desk, reading, step, locked, busy });
  useFirstChoice(desk, reading);
  useEffect(() => desk.teaching.set(isGathering(teaching)), [desk, teaching]);

  const onExample = useCallback(
    (edit: Edit) => {
      lesson.set((now) => ({
        ...now,
        examples: [...now.examples, { film: desk.film, size, box: edit.box }],
      }));
      desk.edit.set(null);
    },
    [desk, size],
  );
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
  const teach = may(me, "curator") ? () => lesson.set((now) => ({ ...now, open: true })) : null;
  useKeys({
    desk, reading, acts, size, room, zoom, turn,
    onKeys: () => setKeysOpen(true),
    onTeach: () => teach?.(),
    onExample: () => withEdit(desk, onExample),
  }); // prettier-ignore

  const decide = (decision: { concept: string } | { reason: string }, doubted: Doubt) => {
    setDoubt(null);
    step(decided(doubted, decision), () => desk.edit.set(null));
  };
  const sitting: Sitting = {
    desk,
    reading,
    acts,
    step,
    busy,
    retrying: busy && mutation.failureCount > 0,
    live,
    locked,
  };
  const ghost = suggestion && !tried && reading.study?.revision === 0 ? suggestion : null;
  const dressed = useDressed(sitting, ghost);
  const [newMap, setNewMap] = useState(true);
  const map = useMap(sitting, newMap);
  return (
    <SittingContext.Provider value={sitting}>
      <div className="reading">
        <div className="film-side">
          <Toolbar zoom={zoom} onKeys={() => setKeysOpen(true)} />
          <div className="film-place" ref={place}>
            <FilmView
              desk={desk}
              size={size}
              map={map}
              label={words.filmView}
              onDraw={acts.draw}
              onPick={acts.pick}
              {...dressed}
            />
            <Corner desk={desk} size={size}>
              {ghost && (
                <Try
                  suggestion={ghost}
                  onClose={() => setTried(true)}
                  onDo={() => {
                    setTried(true);
                    desk.choice.set((now) => ({ ...now, concept: ghost.concept }));
                    desk.edit.set({ ...ghost, positive: true, number: null, moving: false });
                  }}
                />
              )}
              {back !== null && <LookingBack />}
              <StepTrouble error={busy ? null : mutation.error} onClose={() => mutation.reset()} />
              <EditCard onExample={onExample} />
            </Corner>
          </div>
          <MapLegend />
        </div>
        <SidePanel
          film={film}
          turn={turn}
          onTeach={teach}
          newMap={newMap}
          onNewMap={setNewMap}
          onKept={(model) => go(`/films/${desk.film}/${model}`)}
        />
      </div>
      {keysOpen && <KeysDialog onClose={() => setKeysOpen(false)} />}
      {doubt && (
        <DoubtDialog
          doubt={doubt}
          onCancel={() => {
            setDoubt(null);
            mutation.reset();
            desk.edit.set(null);
          }}
          onChange={(concept) => decide({ concept }, doubt)}
          onConfirm={(reason) => decide({ reason }, doubt)}
        />
      )}
    </SittingContext.Provider>
  );

  function LookingBack() {
    const at = back ?? 0;
    return (
      <div className="looking-back" role="status">
        {at === 0 ? words.atFirst : words.lookingBack(at, reading.study?.revision ?? 0)}
        <button type="button" onClick={() => desk.back.set(null)}>
          {words.toNow}
        </button>
      </div>
    );
  }
}

/** Where the box in hand is not. */
function Corner({ desk, size, children }: { desk: Desk; size: Size; children: ReactNode }) {
  const box = useStore(desk.edit)?.box;
  const right = box !== undefined && box.x1 + box.x2 > size.width;
  return <div className={right ? "corner left" : "corner"}>{children}</div>;
}

function withEdit(desk: Desk, act: (edit: Edit) => void): void {
  const edit = desk.edit.get();
  if (edit) act(edit);
}

function useLiveCheck(study: string | undefined): LiveCheck | null {
  const live = useMemo(() => (study ? new LiveCheck(study) : null), [study]);
  useEffect(() => () => live?.end(), [live]);
  return live;
}

/** The finding that stands out most is chosen until somebody chooses. */
function useFirstChoice(desk: Desk, reading: Reading): void {
  const first = reading.explanation?.concepts[0]?.name;
  useEffect(() => {
    const { concept } = desk.choice.get();
    const known = reading.concepts.some((one) => one.name === concept);
    if (first && (concept === null || (reading.concepts.length > 0 && !known)))
      desk.choice.set((now) => ({ ...now, concept: first }));
  }, [desk, first, reading.concepts]);
}

const MAP_SIDE = 512;

/** Where the map is that lies on the film; those of the other findings are fetched ahead. */
function useMap({ desk, reading }: Sitting, newMap: boolean): string | null {
  const choice = useStore(desk.choice);
  const { learnt } = useStore(lesson);
  const queries = useQueryClient();
  const { shown, explanation } = reading;
  const address = (concept: string) =>
    `/api/v1/studies/${shown?.id ?? ""}/maps/${concept}.png?kind=${choice.kind}&side=${MAP_SIDE}&at=${shown?.at ?? 0}`;
  useEffect(() => {
    if (!shown) return;
    for (const one of explanation?.concepts ?? [])
      queries.query(pictureQuery(address(one.name))).catch(() => undefined);
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the address is made of what stands here
  }, [queries, shown?.id, shown?.at, explanation, choice.kind]);
  if (learnt && newMap && choice.hovered === null) {
    return `/api/v1/films/${desk.film}/maps/${learnt.concept}.png?model=${learnt.model}&kind=${choice.kind}&side=${MAP_SIDE}`;
  }
  const concept = mapped(choice);
  return concept !== null && shown && explanation?.concepts.some((one) => one.name === concept)
    ? address(concept)
    : null;
}
