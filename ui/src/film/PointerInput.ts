/** Turns pointer events on the film into gestures and updates the viewer state. */
import { isAtLeast } from "./box";
import type { FilmViewProps } from "./FilmView";
import {
  applyGesture,
  applyPinch,
  cursorAt,
  DRAG_THRESHOLD,
  type Gesture,
  type GestureContext,
  startGesture,
  startPinch,
} from "./gestures";
import { fitView, type Point, type Size, toFilm, zoomView } from "./panZoom";
import type { ViewerState } from "./viewerState";

const WHEEL_SPEED = 0.0015;

export class PointerInput {
  private gesture: Gesture | null = null;
  private readonly pointers = new Map<number, Point>();
  private panning = false;
  private moved = false;
  private readonly cleanups: (() => void)[];

  constructor(
    private readonly element: HTMLDivElement,
    private readonly viewer: ViewerState,
    private readonly film: Size,
    private readonly props: () => FilmViewProps,
  ) {
    this.cleanups = [
      listen(element, "pointerdown", (event) => this.press(event)),
      listen(element, "pointermove", (event) => this.move(event)),
      listen(element, "pointerup", (event) => this.release(event)),
      listen(element, "pointercancel", (event) => this.release(event)),
      listen(element, "contextmenu", (event) => event.preventDefault()),
      listen(element, "wheel", (event) => this.wheel(event), { passive: false }),
      listen(window, "keydown", (event) => this.onSpaceKey(event, true)),
      listen(window, "keyup", (event) => this.onSpaceKey(event, false)),
    ];
  }

  dispose(): void {
    for (const end of this.cleanups) end();
  }

  private gestureContext(): GestureContext {
    const viewport = { width: this.element.clientWidth, height: this.element.clientHeight };
    const { viewer, film } = this;
    const view = viewer.view.get() ?? fitView(film, viewport);
    return {
      film,
      viewport,
      view,
      windowLevel: viewer.windowLevel.get(),
      tool: viewer.tool.get(),
      editable: viewer.draft.get()?.box ?? null,
    };
  }

  private positionOf(event: MouseEvent): Point {
    const { left, top } = this.element.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  private press(event: PointerEvent): void {
    this.element.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.positionOf(event));
    const [first, second] = [...this.pointers.values()];
    if (first && second) {
      this.revertDraft();
      this.gesture = startPinch(first, second, this.gestureContext().view);
    } else
      this.gesture = startGesture(
        { at: this.positionOf(event), button: event.button, panning: this.panning },
        this.gestureContext(),
      );
    this.moved = false;
  }

  private move(event: PointerEvent): void {
    const at = this.positionOf(event);
    if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, at);
    if (!this.gesture) this.element.style.cursor = cursorAt(at, this.gestureContext(), this.panning);
    else if (this.gesture.kind === "pinch") this.pinch(this.gesture);
    else this.drag(this.gesture, at);
  }

  private drag(gesture: Gesture & { kind: "draw" | "edit" | "pan" | "windowLevel" }, at: Point): void {
    const distance = Math.hypot(at.x - gesture.from.x, at.y - gesture.from.y);
    if (!this.moved && distance < DRAG_THRESHOLD) return;
    this.moved = true;
    const effect = applyGesture(gesture, at, this.gestureContext());
    if ("box" in effect) this.props().onDraw(effect.box, false, gesture.kind === "draw");
    else if ("view" in effect) this.viewer.view.set(effect.view);
    else this.viewer.windowLevel.set(effect.windowLevel);
  }

  private pinch(gesture: Gesture & { kind: "pinch" }): void {
    const [first, second] = [...this.pointers.values()];
    if (first && second) this.viewer.view.set(applyPinch(gesture, [first, second], this.gestureContext()));
  }

  private release(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    this.finish(this.positionOf(event));
    this.gesture = null;
  }

  private finish(at: Point): void {
    const { gesture } = this;
    if (gesture?.kind !== "draw" && gesture?.kind !== "edit") return;
    const box = this.viewer.draft.get()?.box;
    const minimum = DRAG_THRESHOLD / this.gestureContext().view.scale;
    if (this.moved && box && isAtLeast(box, minimum)) this.props().onDraw(box, true, gesture.kind === "draw");
    else if (gesture.kind === "draw") this.pick(at);
    else this.revertDraft();
  }

  /** Undo the gesture: a second finger touched the film, or the box became too small. */
  private revertDraft(): void {
    const { gesture } = this;
    if (!this.moved) return;
    if (gesture?.kind === "edit") this.props().onDraw(gesture.box, true, false);
    else if (gesture?.kind === "draw") this.viewer.draft.set(null);
  }

  private pick(at: Point): void {
    const { x, y } = toFilm(this.gestureContext().view, at);
    this.props().onPick(x, y);
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const context = this.gestureContext();
    const factor = Math.exp(-event.deltaY * (event.deltaMode === 1 ? 30 : 1) * WHEEL_SPEED);
    this.viewer.view.set(zoomView(context.view, factor, this.positionOf(event), this.film, context.viewport));
  }

  private onSpaceKey(event: KeyboardEvent, down: boolean): void {
    if (event.key !== " " || event.target !== this.element) return;
    event.preventDefault();
    this.panning = down;
    this.element.style.cursor = down ? "grab" : "crosshair";
  }
}

function listen<K extends keyof HTMLElementEventMap>(
  target: HTMLElement | Window,
  kind: K,
  listener: (event: HTMLElementEventMap[K]) => void,
  options?: AddEventListenerOptions,
): () => void {
  target.addEventListener(kind, listener as EventListener, options);
  return () => target.removeEventListener(kind, listener as EventListener, options);
}
