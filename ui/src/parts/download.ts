/** Saves an answer of the server as a file. Asked like everything else, so that a session that ended is renewed first. */
import { reachAt } from "../api/client";

export async function download(address: string, name: string, init: RequestInit = {}): Promise<void> {
  const content = await (await reachAt(address, init)).blob();
  const place = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = place;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(place), 60_000);
}
