import type { Clock } from '../clock.ts';
import type { Unsubscribe } from '../store/store.ts';
import { type ClaimOrder, type ClaimStore, Line, type StartedJob } from './claim-line.ts';
import { ProblemError } from './problem.ts';
import type { RemoteRuns } from './remote-runs.ts';

const MOST_WAITING = 20_000;
const MOST_LINES = 1_000;

/** Claims of remote workers, which wait until there is work: see claim-line.ts. */
export class Claims {
  readonly #store: ClaimStore;
  readonly #clock: Clock;
  readonly #runs: RemoteRuns;
  readonly #lines: Map<string, Line> = new Map();
  #waiting = 0;
  #unsubscribe: Unsubscribe | null = null;

  constructor(store: ClaimStore, clock: Clock, runs: RemoteRuns) {
    this.#store = store;
    this.#clock = clock;
    this.#runs = runs;
  }

  /** How many requests wait for work. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Jobs for this worker; an empty list when none came in time, or the caller hung up. */
  async claim(order: ClaimOrder): Promise<readonly StartedJob[]> {
    if (this.#waiting >= MOST_WAITING) throw tooMany();
    this.#unsubscribe ??= this.#store.onWork(() => {
      for (const line of this.#lines.values()) line.wake();
    });
    const line = this.#lineOf(order);
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

  #lineOf({ plan, names }: ClaimOrder): Line {
    const key = JSON.stringify([plan.queues, names]);
    const known = this.#lines.get(key);
    if (known !== undefined) return known;
    if (this.#lines.size >= MOST_LINES) this.#forgetEmpty();
    const line = new Line(this.#store, this.#clock, this.#runs, plan);
    this.#lines.set(key, line);
    return line;
  }

  #forgetEmpty(): void {
    for (const [key, line] of this.#lines) if (line.isEmpty) this.#lines.delete(key);
    if (this.#lines.size >= MOST_LINES) throw tooMany();
  }
}

function tooMany(): ProblemError {
  const headers = { 'retry-after': '5' };
  return new ProblemError(429, 'TOO_MANY_WAITING', 'Too many claims wait. Claim more jobs at once.', { headers });
}
