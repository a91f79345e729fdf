import type { Clock } from '../clock.ts';
import type { Unsubscribe } from '../store/store.ts';
import type { WorkPlan } from '../worker/options.ts';
import { type Claimed, type ClaimOrder, type ClaimStore, Line, type LineParts } from './claim-line.ts';
import { ProblemError } from './problem.ts';

const MOST_WAITING = 20_000;
const MOST_LINES = 1_000;
/** Queues and names of all lines together: 1,000 workers may each ask for 100 of their own. */
const MOST_WORDS = 100_000;

/** Claims of remote workers, which wait until there is work: see claim-line.ts. */
export class Claims {
  readonly #store: ClaimStore;
  readonly #clock: Clock;
  readonly #parts: LineParts;
  readonly #lines: Map<string, Line> = new Map();
  #waiting = 0;
  #words = 0;
  #unsubscribe: Unsubscribe | null = null;

  constructor(store: ClaimStore, clock: Clock, parts: LineParts) {
    this.#store = store;
    this.#clock = clock;
    this.#parts = parts;
  }

  /** How many requests wait for work. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Jobs for this worker; an empty list when none came in time, or the caller hung up. */
  async claim(order: ClaimOrder): Promise<Claimed> {
    if (this.#waiting >= MOST_WAITING) throw tooMany();
    this.#unsubscribe ??= this.#store.onWork(() => {
      for (const line of this.#lines.values()) line.wake();
    });
    const { line } = order;
    this.#waiting++;
    try {
      return await line.claim(order);
    } finally {
      this.#waiting--;
    }
  }

  /** Answers all that wait with nothing. */
  close(): void {
    this.#unsubscribe?.();
    for (const line of this.#lines.values()) line.close();
  }

  /** Where claims for these queues and names wait. They share its lists: thousands of workers may send the same ones. */
  lineOf(plan: WorkPlan, names: readonly string[] | null): Line {
    const key = JSON.stringify([plan.queues, plan.leaseMs, names]);
    const known = this.#lines.get(key);
    if (known !== undefined) return known;
    const line = new Line(this.#store, this.#clock, this.#parts, { plan, names });
    if (!this.#hasRoomFor(line)) this.#forgetEmpty();
    if (!this.#hasRoomFor(line)) throw tooMany();
    this.#lines.set(key, line);
    this.#words += line.words;
    return line;
  }

  #hasRoomFor({ words }: Line): boolean {
    return this.#lines.size < MOST_LINES && this.#words + words <= MOST_WORDS;
  }

  #forgetEmpty(): void {
    for (const [key, line] of this.#lines) {
      if (!line.isEmpty) continue;
      this.#lines.delete(key);
      this.#words -= line.words;
    }
  }
}

function tooMany(): ProblemError {
  const headers = { 'retry-after': '5' };
  return new ProblemError(429, 'TOO_MANY_WAITING', 'Too many claims wait. Claim more jobs at once.', { headers });
}
