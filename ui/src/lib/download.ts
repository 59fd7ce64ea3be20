/** Downloads a response as a file. Requested by the page's own client, so that an expired session is renewed first. */
import { fetchFrom } from "../api/client";

export async function download(address: string, name: string, init: RequestInit = {}): Promise<void> {
  const content = await (await fetchFrom(address, init)).blob();
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
