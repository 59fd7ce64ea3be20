/** The hand on the film: turns pointer events into gestures, and gestures into what the desk holds. */
import type { Desk } from "./desk";
import { isThere } from "./box";
import type { FilmViewProps } from "./FilmView";
import { A_DRAG, after, afterPinch, begun, cursor, type Gesture, pinched, type Scene } from "./gestures";
import { fitted, type Point, type Size, toFilm, zoomed } from "./view";

const WHEEL = 0.0015;

export class Hand {
  private gesture: Gesture | null = null;
  private readonly fingers = new Map<number, Point>();
  private panning = false;
  private moved = false;
  private readonly ends: (() => void)[];

  constructor(
    private readonly room: HTMLDivElement,
    private readonly desk: Desk,
    private readonly film: Size,
    private readonly props: () => FilmViewProps,
  ) {
    this.ends = [
      listening(room, "pointerdown", (event) => this.press(event)),
      listening(room, "pointermove", (event) => this.move(event)),
      listening(room, "pointerup", (event) => this.release(event)),
      listening(room, "pointercancel", (event) => this.release(event)),
      listening(room, "contextmenu", (event) => event.preventDefault()),
      listening(room, "wheel", (event) => this.wheel(event), { passive: false }),
      listening(window, "keydown", (event) => this.hold(event, true)),
      listening(window, "keyup", (event) => this.hold(event, false)),
    ];
  }

  letGo(): void {
    for (const end of this.ends) end();
  }

  private scene(): Scene {
    const room = { width: this.room.clientWidth, height: this.room.clientHeight };
    const { desk, film } = this;
    const view = desk.view.get() ?? fitted(film, room);
    return {
      film,
      room,
      view,
      greys: desk.greys.get(),
      tool: desk.tool.get(),
      editable: desk.edit.get()?.box ?? null,
    };
  }

  private at(event: MouseEvent): Point {
    const { left, top } = this.room.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  private press(event: PointerEvent): void {
    this.room.setPointerCapture(event.pointerId);
    this.fingers.set(event.pointerId, this.at(event));
    const [one, other] = [...this.fingers.values()];
    if (one && other) {
      this.takeBack();
      this.gesture = pinched(one, other, this.scene().view);
    } else
      this.gesture = begun({ at: this.at(event), button: event.button, panning: this.panning }, this.scene());
    this.moved = false;
  }

  private move(event: PointerEvent): void {
    const at = this.at(event);
    if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, at);
    if (!this.gesture) this.room.style.cursor = cursor(at, this.scene(), this.panning);
    else if (this.gesture.kind === "pinch") this.pinch(this.gesture);
    else this.drag(this.gesture, at);
  }

  private drag(gesture: Gesture & { kind: "draw" | "edit" | "pan" | "greys" }, at: Point): void {
    const far = Math.hypot(at.x - gesture.from.x, at.y - gesture.from.y);
    if (!this.moved && far < A_DRAG) return;
    this.moved = true;
    const effect = after(gesture, at, this.scene());
    if ("box" in effect) this.props().onDraw(effect.box, false, gesture.kind === "draw");
    else if ("view" in effect) this.desk.view.set(effect.view);
    else this.desk.greys.set(effect.greys);
  }

  private pinch(gesture: Gesture & { kind: "pinch" }): void {
    const [one, other] = [...this.fingers.values()];
    if (one && other) this.desk.view.set(afterPinch(gesture, [one, other], this.scene()));
  }

  private release(event: PointerEvent): void {
    this.fingers.delete(event.pointerId);
    this.finish(this.at(event));
    this.gesture = null;
  }

  private finish(at: Point): void {
    const { gesture } = this;
    if (gesture?.kind !== "draw" && gesture?.kind !== "edit") return;
    const box = this.desk.edit.get()?.box;
    const least = A_DRAG / this.scene().view.scale;
    if (this.moved && box && isThere(box, least)) this.props().onDraw(box, true, gesture.kind === "draw");
    else if (gesture.kind === "draw") this.picked(at);
    else this.takeBack();
  }

  /** A second finger came, or the box became too small: it is as if nobody had touched it. */
  private takeBack(): void {
    const { gesture } = this;
    if (!this.moved) return;
    if (gesture?.kind === "edit") this.props().onDraw(gesture.box, true, false);
    else if (gesture?.kind === "draw") this.desk.edit.set(null);
  }

  private picked(at: Point): void {
    const { x, y } = toFilm(this.scene().view, at);
    this.props().onPick(x, y);
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const scene = this.scene();
    const factor = Math.exp(-event.deltaY * (event.deltaMode === 1 ? 30 : 1) * WHEEL);
    this.desk.view.set(zoomed(scene.view, factor, this.at(event), this.film, scene.room));
  }

  private hold(event: KeyboardEvent, down: boolean): void {
    if (event.key !== " " || event.target !== this.room) return;
    event.preventDefault();
    this.panning = down;
    this.room.style.cursor = down ? "grab" : "crosshair";
  }
}

function listening<K extends keyof HTMLElementEventMap>(
  target: HTMLElement | Window,
  kind: K,
  listener: (event: HTMLElementEventMap[K]) => void,
  options?: AddEventListenerOptions,
): () => void {
  target.addEventListener(kind, listener as EventListener, options);
  return () => target.removeEventListener(kind, listener as EventListener, options);
}
