/**
 * Asks the server for the safety check while a box is being drawn. One request at a time; only the newest box
 * counts.
 */
import { client, unwrap } from "../api/client";
import type { Check } from "../api/types";
import { type Box, isSameBox } from "../film/box";
import { createStore } from "../lib/store";

export interface CheckRequest {
  box: Box;
  concept: string;
}

/** Minimum milliseconds between two requests, about one screen frame. */
const PAUSE = 12;

export class LiveCheck {
  readonly result = createStore<{ request: CheckRequest; check: Check } | null>(null);
  private next: CheckRequest | null = null;
  private wanted: CheckRequest | null = null;
  private running = false;
  private stopped = false;

  constructor(
    private readonly study: string,
    private readonly sendCheck: (study: string, request: CheckRequest) => Promise<Check> = postCheck,
  ) {}

  /** Send as soon as the previous request is answered; null cancels. */
  request(request: CheckRequest | null): void {
    this.next = this.wanted = request;
    if (request === null) this.result.set(null);
    else if (!this.running) void this.run();
  }

  /** Also restarts after `stop`, when React mounts the screen again. */
  start(): void {
    this.stopped = false;
  }

  stop(): void {
    this.stopped = true;
    this.next = this.wanted = null;
  }

  private async run(): Promise<void> {
    this.running = true;
    while (this.next !== null && !this.stopped) {
      const request: CheckRequest = this.next;
      this.next = null;
      const pause = new Promise((resolve) => setTimeout(resolve, PAUSE));
      try {
        const check = await this.sendCheck(this.study, request);
        // Drop a result for another finding than the one now requested.
        if (this.wanted?.concept === request.concept) this.result.set({ request, check });
      } catch {
        // Show no result. Applying the box checks again and reports any error.
        this.result.set(null);
      }
      await pause;
    }
    this.running = false;
  }
}

export function isResultFor(result: { request: CheckRequest } | null, box: Box, concept: string): boolean {
  return result !== null && result.request.concept === concept && isSameBox(result.request.box, box);
}

function postCheck(study: string, { box, concept }: CheckRequest): Promise<Check> {
  return unwrap(
    client.POST("/api/v1/studies/{study}/check", { params: { path: { study } }, body: { box, concept } }),
  );
}
