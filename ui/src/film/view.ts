/** Which part of a film is shown, and how large. The only place where screen and film pixels meet. */
export interface Size {
  width: number;
  height: number;
}

export interface Point {
  x: number;
  y: number;
}

/** A point of the film lies at `x + film.x * scale` on the screen. */
export interface View {
  scale: number;
  x: number;
  y: number;
}

const CLOSEST = 16;
const FARTHEST_OF_FIT = 0.5;
/** So much of the film always stays in sight, in screen pixels. */
const IN_SIGHT = 60;

export function fitted(film: Size, room: Size): View {
  const scale = Math.min(room.width / film.width, room.height / film.height);
  return { scale, x: (room.width - film.width * scale) / 2, y: (room.height - film.height * scale) / 2 };
}

/** Larger by `factor`, with what lies under `at` staying there. */
export function zoomed(view: View, factor: number, at: Point, film: Size, room: Size): View {
  const fit = fitted(film, room).scale;
  const scale = clamp(view.scale * factor, fit * FARTHEST_OF_FIT, Math.max(CLOSEST, fit));
  const grown = scale / view.scale;
  return kept({ scale, x: at.x - (at.x - view.x) * grown, y: at.y - (at.y - view.y) * grown }, film, room);
}

export function panned(view: View, dx: number, dy: number, film: Size, room: Size): View {
  return kept({ ...view, x: view.x + dx, y: view.y + dy }, film, room);
}

/** The same part of the film in another room, for windows that change their size. */
export function moved(view: View, film: Size, before: Size, after: Size): View {
  const middle = toFilm(view, { x: before.width / 2, y: before.height / 2 });
  const scale = (view.scale * fitted(film, after).scale) / fitted(film, before).scale;
  return kept(
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

function kept(view: View, film: Size, room: Size): View {
  return {
    scale: view.scale,
    x: clamp(view.x, IN_SIGHT - film.width * view.scale, room.width - IN_SIGHT),
    y: clamp(view.y, IN_SIGHT - film.height * view.scale, room.height - IN_SIGHT),
  };
}
