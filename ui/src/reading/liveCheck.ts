/** What the model sees in a box, asked while the box is being drawn: the newest box wins, one question at a time. */
import { client, told } from "../api/client";
import type { Check } from "../api/types";
import { type Box, sameBox } from "../film/box";
import { createStore } from "../parts/store";

export interface Asked {
  box: Box;
  concept: string;
}

/** Between two questions at least, in milliseconds: no more of them than a screen has frames, give or take. */
const PAUSE = 12;

export class LiveCheck {
  readonly answer = createStore<{ asked: Asked; check: Check } | null>(null);
  private next: Asked | null = null;
  private wanted: Asked | null = null;
  private busy = false;
  private ended = false;

  constructor(
    private readonly study: string,
    private readonly ask: (study: string, asked: Asked) => Promise<Check> = asking,
  ) {}

  /** Ask as soon as the question before is answered; null: nobody wants to know any more. */
  want(asked: Asked | null): void {
    this.next = this.wanted = asked;
    if (asked === null) this.answer.set(null);
    else if (!this.busy) void this.work();
  }

  /** Also after an end: a screen that is shown again asks again. */
  begin(): void {
    this.ended = false;
  }

  end(): void {
    this.ended = true;
    this.next = this.wanted = null;
  }

  private async work(): Promise<void> {
    this.busy = true;
    while (this.next !== null && !this.ended) {
      const asked: Asked = this.next;
      this.next = null;
      const pause = new Promise((resolve) => setTimeout(resolve, PAUSE));
      try {
        const check = await this.ask(this.study, asked);
        // An answer about another finding than the one now asked for would mislead.
        if (this.wanted?.concept === asked.concept) this.answer.set({ asked, check });
      } catch {
        // A check that fails tells nothing: applying asks again, and whatever is wrong is told then.
        this.answer.set(null);
      }
      await pause;
    }
    this.busy = false;
  }
}

export function answers(answer: { asked: Asked } | null, box: Box, concept: string): boolean {
  return answer !== null && answer.asked.concept === concept && sameBox(answer.asked.box, box);
}

function asking(study: string, { box, concept }: Asked): Promise<Check> {
  return told(
    client.POST("/api/v1/studies/{study}/check", { params: { path: { study } }, body: { box, concept } }),
  );
}
