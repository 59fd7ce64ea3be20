/** What is drawn of a film: its greys, a map over them, boxes on top. Konva draws; nothing here decides anything. */
import Konva from "konva";

import type { Box } from "./box";
import type { Size, View } from "./view";

export interface BoxShown {
  box: Box;
  positive: boolean;
  colour: string;
  label: string;
}

const FADE = 0.25;
const LABEL = 13;
const GRIP = 9;

export class FilmStage {
  private readonly stage: Konva.Stage;
  private readonly filmLayer = new Konva.Layer({ listening: false, imageSmoothingEnabled: true });
  private readonly mapLayer = new Konva.Layer({ listening: false });
  private readonly boxLayer = new Konva.Layer({ listening: false });
  private readonly editLayer = new Konva.Layer({ listening: false });
  private readonly film: Konva.Image;
  private map: Konva.Image | null = null;
  private view: View = { scale: 1, x: 0, y: 0 };
  private opacity = 1;

  constructor(
    place: HTMLDivElement,
    private readonly size: Size,
    picture: HTMLCanvasElement,
    private readonly still: boolean,
  ) {
    this.stage = new Konva.Stage({ container: place, width: 1, height: 1 });
    this.film = new Konva.Image({ image: picture, width: size.width, height: size.height });
    this.filmLayer.add(this.film);
    this.stage.add(this.filmLayer, this.mapLayer, this.boxLayer, this.editLayer);
  }

  resize(room: Size): void {
    this.stage.size(room);
  }

  show(view: View): void {
    const scaleChanged = view.scale !== this.view.scale;
    this.view = view;
    this.stage.position({ x: view.x, y: view.y });
    this.stage.scale({ x: view.scale, y: view.scale });
    if (scaleChanged) for (const layer of [this.boxLayer, this.editLayer]) this.unscale(layer);
    this.stage.batchDraw();
  }

  /** The picture's canvas was drawn anew. */
  redevelop(): void {
    this.filmLayer.batchDraw();
  }

  /** Lay a map over the film; a change fades in, so that one sees what changed. */
  lay(picture: ImageBitmap | null): void {
    const before = this.map;
    this.map = null;
    if (picture) {
      this.map = new Konva.Image({
        image: picture,
        width: this.size.width,
        height: this.size.height,
        opacity: 0,
      });
      this.mapLayer.add(this.map);
      this.fade(this.map, this.opacity);
    }
    if (before) this.fade(before, 0, () => before.destroy());
    this.mapLayer.batchDraw();
  }

  cover(opacity: number): void {
    this.opacity = opacity;
    this.map?.opacity(opacity);
    this.mapLayer.batchDraw();
  }

  boxes(shown: BoxShown[]): void {
    this.boxLayer.destroyChildren();
    for (const one of shown) this.boxLayer.add(...this.drawn(one, 2));
    this.boxLayer.batchDraw();
  }

  edit(shown: BoxShown | null, ghost: BoxShown | null): void {
    this.editLayer.destroyChildren();
    if (ghost) this.editLayer.add(...this.drawn(ghost, 2));
    if (shown) this.editLayer.add(...this.drawn(shown, 3), ...this.grips(shown));
    this.editLayer.batchDraw();
  }

  destroy(): void {
    this.stage.destroy();
  }

  private drawn(one: BoxShown, width: number): (Konva.Group | Konva.Shape)[] {
    const { x1, y1, x2, y2 } = one.box;
    const frame = { x: x1, y: y1, width: x2 - x1, height: y2 - y1, strokeScaleEnabled: false };
    const dash = one.positive ? [] : [7, 5];
    return [
      new Konva.Rect({ ...frame, stroke: "#000", strokeWidth: width + 2.5, opacity: 0.65 }),
      new Konva.Rect({ ...frame, stroke: one.colour, strokeWidth: width, dash }),
      this.tag(one),
    ];
  }

  private tag(one: BoxShown): Konva.Label {
    const label = new Konva.Label({ x: one.box.x1, y: one.box.y1, name: "steady" });
    label.add(new Konva.Tag({ fill: one.colour, cornerRadius: 2 }));
    label.add(
      new Konva.Text({
        text: one.label,
        fontSize: LABEL,
        padding: 3,
        fill: inkOn(one.colour),
        fontFamily: "system-ui, sans-serif",
      }),
    );
    label.offsetY(label.height());
    label.scale({ x: 1 / this.view.scale, y: 1 / this.view.scale });
    return label;
  }

  private grips({ box, colour }: BoxShown): Konva.Rect[] {
    const across = [box.x1, (box.x1 + box.x2) / 2, box.x2];
    const down = [box.y1, (box.y1 + box.y2) / 2, box.y2];
    const places = across.flatMap((x, column) =>
      down.map((y, row) => ({ x, y, middle: column === 1 && row === 1 })),
    );
    return places
      .filter((place) => !place.middle)
      .map(
        ({ x, y }) =>
          new Konva.Rect({
            x, y, width: GRIP, height: GRIP, offsetX: GRIP / 2, offsetY: GRIP / 2, fill: "#fff", stroke: colour,
            strokeWidth: 1.5, name: "steady", scaleX: 1 / this.view.scale, scaleY: 1 / this.view.scale,
          }), // prettier-ignore
      );
  }

  /** Labels and grips keep their size on the screen. */
  private unscale(layer: Konva.Layer): void {
    for (const node of layer.find(".steady")) node.scale({ x: 1 / this.view.scale, y: 1 / this.view.scale });
  }

  private fade(node: Konva.Image, opacity: number, done?: () => void): void {
    if (this.still) {
      node.opacity(opacity);
      done?.();
      return;
    }
    node.to({ opacity, duration: FADE, ...(done ? { onFinish: done } : {}) });
  }
}

/** Black on bright colours, white on dark ones. */
export function inkOn(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) as [
    number,
    number,
    number,
  ];
  return 0.299 * red + 0.587 * green + 0.114 * blue > 100 ? "#000" : "#fff";
}
