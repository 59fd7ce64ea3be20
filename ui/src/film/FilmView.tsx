import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";

import { pictureQuery } from "../api/sharedQueries";
import { useWords } from "../i18n/words";
import { useStore } from "../lib/store";
import type { Box } from "./box";
import { FilmStage, type StyledBox } from "./FilmStage";
import { fitView, resizeView, type Size } from "./panZoom";
import { PointerInput } from "./PointerInput";
import type { BoxDraft, ViewerState } from "./viewerState";
import { WindowedImage } from "./WindowedImage";
import { FULL_RANGE, isSameWindow, pictureAddress } from "./windowLevel";

export interface FilmViewProps {
  viewer: ViewerState;
  size: Size;
  /** Address of the map shown over the film. */
  mapAddress: string | null;
  boxes: StyledBox[];
  /** Style of the box that is being drawn or edited. */
  styleDraft: (draft: BoxDraft) => StyledBox;
  /** A box that the demo suggests to draw. */
  suggestedBox: StyledBox | null;
  label: string;
  /** `isNew`: a new box, not an edited one. */
  onDraw: (box: Box, done: boolean, isNew: boolean) => void;
  /** A click without a drag, in film pixels. */
  onPick: (x: number, y: number) => void;
}

const LARGEST_SIDE = 2048;
const SERVER_PICTURE_DELAY = 250;

/** The film with a map over it and boxes on top. */
export function FilmView(props: FilmViewProps) {
  const { viewer, size, mapAddress, boxes, styleDraft, suggestedBox, label } = props;
  const container = useRef<HTMLDivElement>(null);
  const stage = useRef<FilmStage | null>(null);
  const windowedImage = useRef<WindowedImage | null>(null);
  const latestProps = useRef(props);
  useEffect(() => {
    latestProps.current = props;
  });
  const words = useWords().reading;
  const { opacity } = useStore(viewer.selection);
  const side = Math.min(Math.max(size.width, size.height), LARGEST_SIDE);
  const preview = useQuery(pictureQuery(`/api/v1/films/${viewer.film}/preview.png`));
  const fullRangePicture = useQuery(pictureQuery(pictureAddress(viewer.film, FULL_RANGE, side)));
  const mapPicture = useQuery({ ...pictureQuery(mapAddress ?? ""), enabled: mapAddress !== null });

  useEffect(() => {
    const element = container.current;
    if (!element) return;
    const picture = new WindowedImage();
    const reducedMotion = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    const filmStage = new FilmStage(element, size, picture.canvas, reducedMotion);
    [stage.current, windowedImage.current] = [filmStage, picture];
    const pointerInput = new PointerInput(element, viewer, size, () => latestProps.current);
    const cleanups = [
      followResize(element, viewer, size, filmStage),
      () => pointerInput.dispose(),
      () => filmStage.destroy(),
    ];
    return () => {
      for (const end of cleanups) end();
      stage.current = null;
    };
  }, [viewer, size]);

  const picture = fullRangePicture.data ?? preview.data;
  useEffect(() => {
    if (picture)
      return followWindowLevel(
        viewer,
        picture,
        fullRangePicture.data ? side : null,
        windowedImage.current,
        stage.current,
      );
    return undefined;
  }, [viewer, size, picture, fullRangePicture.data, side]);
  useEffect(
    () => stage.current?.setMap(mapAddress ? (mapPicture.data ?? null) : null),
    [mapAddress, mapPicture.data, size],
  );
  useEffect(() => stage.current?.setMapOpacity(opacity), [opacity, size]);
  useEffect(() => stage.current?.setBoxes(boxes), [boxes, size]);
  useEffect(() => {
    const redraw = () => {
      const draft = viewer.draft.get();
      stage.current?.setDraft(draft && styleDraft(draft), suggestedBox);
    };
    redraw();
    return viewer.draft.subscribe(redraw);
  }, [viewer, styleDraft, suggestedBox, size]);

  return (
    <>
      <div
        ref={container}
        className="film"
        role="application"
        aria-label={label}
        tabIndex={0}
        data-shown={fullRangePicture.data ? "whole" : preview.data ? "preview" : "nothing"}
      />
      {fullRangePicture.isError && (
        <p className="preview-only" role="alert">
          {words.previewOnly}
        </p>
      )}
    </>
  );
}

/** Fit the stage to its container and follow the viewer's view. Returns the cleanup function. */
function followResize(
  container: HTMLDivElement,
  viewer: ViewerState,
  size: Size,
  stage: FilmStage,
): () => void {
  let before: Size | null = null;
  const updateView = () => {
    const viewport = { width: container.clientWidth, height: container.clientHeight };
    stage.setView(viewer.view.get() ?? fitView(size, viewport));
  };
  const observer = new ResizeObserver(() => {
    const viewport = { width: container.clientWidth, height: container.clientHeight };
    if (viewport.width === 0 || viewport.height === 0) return;
    stage.resize(viewport);
    const view = viewer.view.get();
    if (view && before) viewer.view.set(resizeView(view, size, before, viewport));
    before = viewport;
    updateView();
  });
  observer.observe(container);
  const unsubscribe = viewer.view.subscribe(updateView);
  return () => {
    observer.disconnect();
    unsubscribe();
  };
}

/**
 * Apply window and level in the browser while they change. Once they stay the same for a moment, fetch the
 * picture from the server, which renders it from all bits of the film.
 */
function followWindowLevel(
  viewer: ViewerState,
  fullRange: ImageBitmap,
  side: number | null,
  image: WindowedImage | null,
  stage: FilmStage | null,
): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let ended = false;
  const redraw = () => {
    clearTimeout(timer);
    const window = viewer.windowLevel.get();
    image?.drawWithWindow(fullRange, window);
    stage?.redrawFilm();
    if (side !== null && !isSameWindow(window, FULL_RANGE))
      timer = setTimeout(() => void fetchServerPicture(), SERVER_PICTURE_DELAY);
  };
  const fetchServerPicture = async () => {
    const window = viewer.windowLevel.get();
    try {
      const response = await fetch(pictureAddress(viewer.film, window, side ?? LARGEST_SIDE));
      const picture = response.ok ? await createImageBitmap(await response.blob()) : null;
      if (ended || !picture || !isSameWindow(window, viewer.windowLevel.get())) return;
      image?.draw(picture);
      stage?.redrawFilm();
    } catch {
      // The picture rendered in the browser stays. Other requests report that the server does not answer.
    }
  };
  redraw();
  const unsubscribe = viewer.windowLevel.subscribe(redraw);
  return () => {
    ended = true;
    clearTimeout(timer);
    unsubscribe();
  };
}
