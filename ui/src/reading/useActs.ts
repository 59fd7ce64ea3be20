/** What a person can do with a film, by pointer, button or key. */
import { useMemo } from "react";

import { holds, rounded } from "../film/box";
import type { Desk, Edit } from "../film/desk";
import type { Acts } from "./sitting";
import type { StepAsked } from "./steps";
import type { Reading } from "./useReading";

interface Means {
  desk: Desk;
  reading: Reading;
  step: (asked: StepAsked, done?: () => void) => void;
  locked: boolean;
  busy: boolean;
}

export function useActs(means: Means): Acts {
  const { desk, reading, step, locked, busy } = means;
  return useMemo(
    () => ({
      ...choosing(desk),
      ...drawing({ desk, reading, step, locked, busy }),
      ...stepping({ desk, reading, step, locked, busy }),
    }),
    [desk, reading, step, locked, busy],
  );
}

function choosing(desk: Desk): Pick<Acts, "choose"> {
  return {
    choose: (concept) => {
      desk.choice.set((now) => ({ ...now, concept, pinned: now.concept !== concept || !now.pinned }));
      const edit = desk.edit.get();
      if (edit && edit.number === null) desk.edit.set({ ...edit, concept });
    },
  };
}

function drawing({ desk, reading, step, locked, busy }: Means) {
  const select = (number: number) => {
    const correction = reading.study?.corrections[number];
    if (!correction?.box || !correction.concept) return;
    const { box, concept, kind } = correction;
    desk.edit.set({ box, concept, positive: kind === "box", number, moving: false });
    desk.choice.set((now) => ({ ...now, concept }));
  };
  return {
    select,
    draw: (box: Edit["box"], done: boolean, fresh: boolean) => {
      const concept = desk.choice.get().concept;
      if (locked || concept === null) return;
      const now = desk.edit.get();
      const kept = fresh || !now ? { concept, positive: true, number: null } : now;
      desk.edit.set({ ...kept, box: done ? rounded(box) : box, moving: !done, byHand: true });
    },
    place: (box: Edit["box"]) => {
      const { concept } = desk.choice.get();
      if (!locked && concept !== null)
        desk.edit.set({ box, concept, positive: true, number: null, moving: false });
    },
    pick: (x: number, y: number) => {
      const found = (reading.shown?.corrections ?? [])
        .map((one, number) => ({ box: one.box, number }))
        .filter((one) => one.box && holds(one.box, { x, y }))
        .sort((one, other) => area(one.box) - area(other.box));
      if (locked || desk.teaching.get() || !found[0]) desk.edit.set(null);
      else select(found[0].number);
    },
    apply: () => {
      const edit = desk.edit.get();
      if (!edit || edit.moving || locked || busy || desk.teaching.get()) return;
      const { box, concept, positive, number } = edit;
      const asked = { said: { box, concept, positive }, confirmed: false, reason: null };
      // Only what was applied is put away: somebody may have drawn on while it was on its way.
      const done = () => desk.edit.set((now) => (now === edit ? null : now));
      if (number === null) step({ kind: "box", ...asked }, done);
      else step({ kind: "redraw", number, ...asked }, done);
    },
    discard: () => {
      if (desk.edit.get()) desk.edit.set(null);
      else desk.back.set(null);
    },
    remove: () => {
      const number = desk.edit.get()?.number;
      if (number === null || number === undefined) desk.edit.set(null);
      else if (!locked && !busy) step({ kind: "withdraw", number }, () => desk.edit.set(null));
    },
  };
}

function stepping({ desk, reading, step, locked, busy }: Means) {
  const able = () => !locked && !busy;
  return {
    toggleRejection: (concept: string) => {
      if (!able()) return;
      const found =
        reading.study?.corrections.findIndex((one) => one.kind === "reject" && one.concept === concept) ?? -1;
      if (found < 0) step({ kind: "reject", concept });
      else step({ kind: "withdraw", number: found });
    },
    undo: () => {
      if (able() && reading.study?.can_undo) step({ kind: "undo" }, () => desk.edit.set(null));
    },
    redo: () => {
      if (able() && reading.study?.can_redo) step({ kind: "redo" }, () => desk.edit.set(null));
    },
    lookBack: (by: number) => {
      const last = reading.study?.revision ?? 0;
      const at = Math.min(Math.max((desk.back.get() ?? last) + by, 0), last);
      desk.edit.set(null);
      desk.back.set(at === last ? null : at);
    },
  };
}

function area(box: Edit["box"] | null): number {
  return box ? (box.x2 - box.x1) * (box.y2 - box.y1) : Infinity;
}
