import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import { pictureQuery } from "../api/queries";
import type { Desk, Edit } from "./desk";
import { useStore } from "../parts/store";
import { useWords } from "../words/words";
import type { Box } from "./box";
import { Developed } from "./Developed";
import { type BoxShown, FilmStage } from "./FilmStage";
import { address, PLAIN, sameGreys } from "./greys";
import { Hand } from "./Hand";
import { fitted, moved, type Size } from "./view";

export interface FilmViewProps {
  desk: Desk;
  size: Size;
  /** Address of the map that lies over the film. */
  map: string | null;
  boxes: BoxShown[];
  /** How the box looks that is being drawn. */
  dress: (edit: Edit) => BoxShown;
  /** A box that is only proposed. */
  ghost: BoxShown | null;
  label: string;
  /** `fresh`: a new box, not one that was taken hold of. */
  onDraw: (box: Box, done: boolean, fresh: boolean) => void;
  /** A click that drew nothing, in film pixels. */
  onPick: (x: number, y: number) => void;
}

const LARGEST = 2048;
const SETTLED = 250;

/** The film, with a map over it and boxes on it. */
export function FilmView(props: FilmViewProps) {
  const { desk, size, map, boxes, dress, ghost, label } = props;
  const place = useRef<HTMLDivElement>(null);
  const stage = useRef<FilmStage | null>(null);
  const developed = useRef<Developed | null>(null);
  const latest = useRef(props);
  useEffect(() => {
    latest.current = props;
  });
  const words = useWords().reading;
  const { opacity } = useStore(desk.choice);
  const side = Math.min(Math.max(size.width, size.height), LARGEST);
  const preview = useQuery(pictureQuery(`/api/v1/films/${desk.film}/preview.png`));
  const plain = useQuery(pictureQuery(address(desk.film, PLAIN, side)));
  const laid = useQuery({ ...pictureQuery(map ?? ""), enabled: map !== null });

  useEffect(() => {
    const room = place.current;
    if (!room) return;
    const picture = new Developed();
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const shown = new FilmStage(room, size, picture.canvas, still);
    [stage.current, developed.current] = [shown, picture];
    const hand = new Hand(room, desk, size, () => latest.current);
    const followed = [follow(room, desk, size, shown), () => hand.letGo(), () => shown.destroy()];
    return () => {
      for (const end of followed) end();
      stage.current = null;
    };
  }, [desk, size]);

  const picture = plain.data ?? preview.data;
  useEffect(() => {
    if (picture) return developing(desk, picture, plain.data ? side : null, developed.current, stage.current);
    return undefined;
  }, [desk, size, picture, plain.data, side]);
  useEffect(() => stage.current?.lay(map ? (laid.data ?? null) : null), [map, laid.data, size]);
  useEffect(() => stage.current?.cover(opacity), [opacity, size]);
  useEffect(() => stage.current?.boxes(boxes), [boxes, size]);
  useEffect(() => {
    const redraw = () => {
      const edit = desk.edit.get();
      stage.current?.edit(edit && dress(edit), ghost);
    };
    redraw();
    return desk.edit.subscribe(redraw);
  }, [desk, dress, ghost, size]);

  return (
    <>
      <div
        ref={place}
        className="film"
        role="application"
        aria-label={label}
        tabIndex={0}
        data-shown={plain.data ? "whole" : preview.data ? "preview" : "nothing"}
      />
      {plain.isError && (
        <p className="preview-only" role="alert">
          {words.previewOnly}
        </p>
      )}
    </>
  );
}

/** Keep the drawing as large as its place, and show what the desk says. */
function follow(room: HTMLDivElement, desk: Desk, size: Size, shown: FilmStage): () => void {
  let before: Size | null = null;
  const draw = () => {
    const now = { width: room.clientWidth, height: room.clientHeight };
    shown.show(desk.view.get() ?? fitted(size, now));
  };
  const watcher = new ResizeObserver(() => {
    const now = { width: room.clientWidth, height: room.clientHeight };
    if (now.width === 0 || now.height === 0) return;
    shown.resize(now);
    const view = desk.view.get();
    if (view && before) desk.view.set(moved(view, size, before, now));
    before = now;
    draw();
  });
  watcher.observe(room);
  const stop = desk.view.subscribe(draw);
  return () => {
    watcher.disconnect();
    stop();
  };
}

/** Greys through a table while they change; once they rest, from all the bits that the server has. */
function developing(
  desk: Desk,
  plain: ImageBitmap,
  side: number | null,
  developed: Developed | null,
  stage: FilmStage | null,
): () => void {
  let resting: ReturnType<typeof setTimeout> | undefined;
  let ended = false;
  const develop = () => {
    clearTimeout(resting);
    const greys = desk.greys.get();
    developed?.develop(plain, greys);
    stage?.redevelop();
    if (side !== null && !sameGreys(greys, PLAIN)) resting = setTimeout(() => void fine(), SETTLED);
  };
  const fine = async () => {
    const greys = desk.greys.get();
    try {
      const response = await fetch(address(desk.film, greys, side ?? LARGEST));
      const picture = response.ok ? await createImageBitmap(await response.blob()) : null;
      if (ended || !picture || !sameGreys(greys, desk.greys.get())) return;
      developed?.take(picture);
      stage?.redevelop();
    } catch {
      // The coarser greys stay; the banner tells that the server is gone as soon as anything else asks.
    }
  };
  develop();
  const stop = desk.greys.subscribe(develop);
  return () => {
    ended = true;
    clearTimeout(resting);
    stop();
  };
}
