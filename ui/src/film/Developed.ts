/** A film's picture with greys laid over it, redrawn within a frame while somebody drags. */
import { type Greys, PLAIN, sameGreys, table } from "./greys";

export class Developed {
  readonly canvas = document.createElement("canvas");
  private source: ImageData | null = null;
  private shown: ImageData | null = null;

  /** Show a picture as it is. */
  take(picture: ImageBitmap): void {
    this.canvas.width = picture.width;
    this.canvas.height = picture.height;
    const ink = this.ink();
    ink.drawImage(picture, 0, 0);
    this.source = null;
  }

  /** Let the table work from this picture, which must show all greys. */
  develop(plain: ImageBitmap, greys: Greys): void {
    if (sameGreys(greys, PLAIN)) {
      this.take(plain);
      return;
    }
    const { width, height } = plain;
    if (!this.source || this.source.width !== width || this.source.height !== height) {
      this.take(plain);
      this.source = this.ink().getImageData(0, 0, width, height);
      this.shown = new ImageData(width, height);
    }
    if (this.shown) this.ink().putImageData(through(table(greys), this.source, this.shown), 0, 0);
  }

  private ink(): CanvasRenderingContext2D {
    const ink = this.canvas.getContext("2d", { willReadFrequently: true });
    if (!ink) throw new Error("This browser draws no pictures.");
    return ink;
  }
}

/** Every pixel through the table, four bytes at a time. */
function through(greys: Uint8ClampedArray, from: ImageData, to: ImageData): ImageData {
  const packed = Uint32Array.from(greys, (grey) => (0xff000000 | (grey << 16) | (grey << 8) | grey) >>> 0);
  const [source, target] = [from.data, new Uint32Array(to.data.buffer)];
  for (let pixel = 0; pixel < target.length; pixel++) target[pixel] = packed[source[4 * pixel] ?? 0] ?? 0;
  return to;
}
