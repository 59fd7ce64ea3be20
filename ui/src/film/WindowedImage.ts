/** The film picture with window and level applied, fast enough to follow a drag. */
import { FULL_RANGE, isSameWindow, lookupTable, type WindowLevel } from "./windowLevel";

export class WindowedImage {
  readonly canvas = document.createElement("canvas");
  private source: ImageData | null = null;
  private target: ImageData | null = null;

  /** Draw a picture unchanged. */
  draw(picture: ImageBitmap): void {
    this.canvas.width = picture.width;
    this.canvas.height = picture.height;
    const context = this.canvasContext();
    context.drawImage(picture, 0, 0);
    this.source = null;
  }

  /** Apply the window to a picture that shows the full grey range. */
  drawWithWindow(plain: ImageBitmap, window: WindowLevel): void {
    if (isSameWindow(window, FULL_RANGE)) {
      this.draw(plain);
      return;
    }
    const { width, height } = plain;
    if (!this.source || this.source.width !== width || this.source.height !== height) {
      this.draw(plain);
      this.source = this.canvasContext().getImageData(0, 0, width, height);
      this.target = new ImageData(width, height);
    }
    if (this.target)
      this.canvasContext().putImageData(applyTable(lookupTable(window), this.source, this.target), 0, 0);
  }

  private canvasContext(): CanvasRenderingContext2D {
    const context = this.canvas.getContext("2d", { willReadFrequently: true });
    if (!context) throw new Error("This browser cannot draw on a canvas.");
    return context;
  }
}

/** Map each pixel through the table, writing four bytes at once. */
function applyTable(table: Uint8ClampedArray, from: ImageData, to: ImageData): ImageData {
  const packed = Uint32Array.from(table, (grey) => (0xff000000 | (grey << 16) | (grey << 8) | grey) >>> 0);
  const [source, target] = [from.data, new Uint32Array(to.data.buffer)];
  for (let pixel = 0; pixel < target.length; pixel++) target[pixel] = packed[source[4 * pixel] ?? 0] ?? 0;
  return to;
}
