/** Pan and zoom. The only module that converts between screen pixels and film pixels. */
export interface Size {
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

/** A film point (fx, fy) is shown at screen position (x + fx * scale, y + fy * scale). */
export interface View {
  scale: number;
  x: number;
  y: number;
}

const MAX_SCALE = 16;
const MIN_SCALE_OF_FIT = 0.5;
/** At least this much of the film stays in sight, in screen pixels. */
const MIN_IN_SIGHT = 60;

export function fitView(film: Size, viewport: Size): View {
  const scale = Math.min(viewport.width / film.width, viewport.height / film.height);
  return {
    scale,
    x: (viewport.width - film.width * scale) / 2,
    y: (viewport.height - film.height * scale) / 2,
  };
}

/** Scale by `factor`; the film point under `at` stays there. */
export function zoomView(view: View, factor: number, at: Point, film: Size, viewport: Size): View {
  const fit = fitView(film, viewport).scale;
  const scale = clamp(view.scale * factor, fit * MIN_SCALE_OF_FIT, Math.max(MAX_SCALE, fit));
  const grown = scale / view.scale;
  return keepInSight(
    { scale, x: at.x - (at.x - view.x) * grown, y: at.y - (at.y - view.y) * grown },
    film,
    viewport,
  );
}

export function panView(view: View, dx: number, dy: number, film: Size, viewport: Size): View {
  return keepInSight({ ...view, x: view.x + dx, y: view.y + dy }, film, viewport);
}

/** Keep the centre and relative scale after the viewport changed its size. */
export function resizeView(view: View, film: Size, before: Size, after: Size): View {
  const middle = toFilm(view, { x: before.width / 2, y: before.height / 2 });
  const scale = (view.scale * fitView(film, after).scale) / fitView(film, before).scale;
  return keepInSight(
    { scale, x: after.width / 2 - middle.x * scale, y: after.height / 2 - middle.y * scale },
    film,
    after,
  );
}

export function toFilm(view: View, at: Point): Point {
  return { x: (at.x - view.x) / view.scale, y: (at.y - view.y) / view.scale };
}

export function toScreen(view: View, at: Point): Point {
  return { x: view.x + at.x * view.scale, y: view.y + at.y * view.scale };
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}

function keepInSight(view: View, film: Size, viewport: Size): View {
  return {
    scale: view.scale,
    x: clamp(view.x, MIN_IN_SIGHT - film.width * view.scale, viewport.width - MIN_IN_SIGHT),
    y: clamp(view.y, MIN_IN_SIGHT - film.height * view.scale, viewport.height - MIN_IN_SIGHT),
  };
}
