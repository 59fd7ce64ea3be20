/** Draws film, map and boxes with Konva. Contains no application logic. */
import Konva from "konva";

import type { Box } from "./box";
import type { Size, View } from "./panZoom";

export interface StyledBox {
  box: Box;
  positive: boolean;
  colour: string;
  label: string;
}

const FADE_SECONDS = 0.25;
const LABEL_FONT_SIZE = 13;
const GRIP_SIZE = 9;

export class FilmStage {
  private readonly stage: Konva.Stage;
  private readonly filmLayer = new Konva.Layer({ listening: false, imageSmoothingEnabled: true });
  private readonly mapLayer = new Konva.Layer({ listening: false });
  private readonly boxLayer = new Konva.Layer({ listening: false });
  private readonly draftLayer = new Konva.Layer({ listening: false });
  private readonly film: Konva.Image;
  private map: Konva.Image | null = null;
  private view: View = { scale: 1, x: 0, y: 0 };
  private opacity = 1;

  constructor(
    container: HTMLDivElement,
    private readonly size: Size,
    picture: HTMLCanvasElement,
    private readonly reducedMotion: boolean,
  ) {
    this.stage = new Konva.Stage({ container, width: 1, height: 1 });
    this.film = new Konva.Image({ image: picture, width: size.width, height: size.height });
    this.filmLayer.add(this.film);
    this.stage.add(this.filmLayer, this.mapLayer, this.boxLayer, this.draftLayer);
  }

  resize(viewport: Size): void {
    this.stage.size(viewport);
  }

  setView(view: View): void {
    const scaleChanged = view.scale !== this.view.scale;
    this.view = view;
    this.stage.position({ x: view.x, y: view.y });
    this.stage.scale({ x: view.scale, y: view.scale });
    if (scaleChanged) for (const layer of [this.boxLayer, this.draftLayer]) this.keepScreenSize(layer);
    this.stage.batchDraw();
  }

  /** Redraw after the picture's canvas has changed. */
  redrawFilm(): void {
    this.filmLayer.batchDraw();
  }

  /** Show a map over the film. The new map fades in while the old one fades out. */
  setMap(picture: ImageBitmap | null): void {
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

  setMapOpacity(opacity: number): void {
    this.opacity = opacity;
    this.map?.opacity(opacity);
    this.mapLayer.batchDraw();
  }

  setBoxes(boxes: StyledBox[]): void {
    this.boxLayer.destroyChildren();
    for (const styledBox of boxes) this.boxLayer.add(...this.boxShapes(styledBox, 2));
    this.boxLayer.batchDraw();
  }

  setDraft(draft: StyledBox | null, suggestedBox: StyledBox | null): void {
    this.draftLayer.destroyChildren();
    if (suggestedBox) this.draftLayer.add(...this.boxShapes(suggestedBox, 2));
    if (draft) this.draftLayer.add(...this.boxShapes(draft, 3), ...this.gripShapes(draft));
    this.draftLayer.batchDraw();
  }

  destroy(): void {
    this.stage.destroy();
  }

  private boxShapes(styledBox: StyledBox, width: number): (Konva.Group | Konva.Shape)[] {
    const { x1, y1, x2, y2 } = styledBox.box;
    const frame = { x: x1, y: y1, width: x2 - x1, height: y2 - y1, strokeScaleEnabled: false };
    const dash = styledBox.positive ? [] : [7, 5];
    return [
      new Konva.Rect({ ...frame, stroke: "#000", strokeWidth: width + 2.5, opacity: 0.65 }),
      new Konva.Rect({ ...frame, stroke: styledBox.colour, strokeWidth: width, dash }),
      this.labelShape(styledBox),
    ];
  }

  private labelShape(styledBox: StyledBox): Konva.Label {
    const label = new Konva.Label({ x: styledBox.box.x1, y: styledBox.box.y1, name: "steady" });
    label.add(new Konva.Tag({ fill: styledBox.colour, cornerRadius: 2 }));
    label.add(
      new Konva.Text({
        text: styledBox.label,
        fontSize: LABEL_FONT_SIZE,
        padding: 3,
        fill: labelTextColour(styledBox.colour),
        fontFamily: "system-ui, sans-serif",
      }),
    );
    label.offsetY(label.height());
    label.scale({ x: 1 / this.view.scale, y: 1 / this.view.scale });
    return label;
  }

  private gripShapes({ box, colour }: StyledBox): Konva.Rect[] {
    const across = [box.x1, (box.x1 + box.x2) / 2, box.x2];
    const down = [box.y1, (box.y1 + box.y2) / 2, box.y2];
    const positions = across.flatMap((x, column) =>
      down.map((y, row) => ({ x, y, middle: column === 1 && row === 1 })),
    );
    return positions
      .filter((position) => !position.middle)
      .map(
        ({ x, y }) =>
          new Konva.Rect({
            x, y, width: GRIP_SIZE, height: GRIP_SIZE, offsetX: GRIP_SIZE / 2, offsetY: GRIP_SIZE / 2, fill: "#fff", stroke: colour,
            strokeWidth: 1.5, name: "steady", scaleX: 1 / this.view.scale, scaleY: 1 / this.view.scale,
          }), // prettier-ignore
      );
  }

  /** Labels and grips keep their screen size when the scale changes. */
  private keepScreenSize(layer: Konva.Layer): void {
    for (const node of layer.find(".steady")) node.scale({ x: 1 / this.view.scale, y: 1 / this.view.scale });
  }

  private fade(node: Konva.Image, opacity: number, done?: () => void): void {
    if (this.reducedMotion) {
      node.opacity(opacity);
      done?.();
      return;
    }
    node.to({ opacity, duration: FADE_SECONDS, ...(done ? { onFinish: done } : {}) });
  }
}

/** Text colour with enough contrast on a label of this colour. */
export function labelTextColour(colour: string): string {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)) as [
    number,
    number,
    number,
  ];
  return 0.299 * red + 0.587 * green + 0.114 * blue > 100 ? "#000" : "#fff";
}
