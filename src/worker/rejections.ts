import type { Clock } from '../clock.ts';
import type { RejectedBefore } from '../retry/outcome.ts';
import { rejectedKind } from '../store/store.ts';

/*
 * A worker that has rejected a payload would most likely reject it again, and others of that kind. So for a while it leaves those
 * to other workers, among which may be one of another deploy that can read them. All other jobs of the name it takes as ever, also
 * payloads that were rejected in another way: where two deploys run side by side, each rejects what the other can read. The pause
 * grows with each time that the worker tried and rejected one again; a worker that starts again tries at once.
 */

const SHORTEST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5 * 60_000;
/** The job is dead after a time, and a worker has to look at it for that: so many times before it is over. */
const LOOKS = 10;

interface Pause {
  readonly ms: number;
  readonly until: number;
}

export class Rejections {
  readonly #clock: Clock;
  readonly #longestMs: number;
  /** By `rejectedKind`. */
  readonly #pauses: Map<string, Pause> = new Map();

  constructor(clock: Clock, giveUpAfterMs: number) {
    this.#clock = clock;
    this.#longestMs = Math.max(1, Math.min(LONGEST_PAUSE_MS, giveUpAfterMs / LOOKS));
  }

  /**
   * A payload of this name was rejected, and waits aside for others. Where another worker had rejected it in another way, neither kind
   * is worth a try: else the two would hand it to each other.
   */
  add(name: string, kind: string | undefined, before: RejectedBefore | null): void {
    this.#pause(rejectedKind(name, kind));
    if (before !== null && before.kind !== kind) this.#pause(rejectedKind(name, before.kind));
  }

  #pause(rejected: string): void {
    const now = this.#clock.monotonic();
    const last = this.#pauses.get(rejected);
    // One that it had claimed before, or that came for the first time.
    if (last !== undefined && now < last.until) return;
    const ms = Math.min(this.#longestMs, last === undefined ? SHORTEST_PAUSE_MS : last.ms * 2);
    this.#pauses.set(rejected, { ms, until: now + ms });
  }

  /** The kinds of rejected payloads that it leaves to others now; undefined for none. */
  avoided(): ReadonlySet<string> | undefined {
    if (this.#pauses.size === 0) return undefined;
    const now = this.#clock.monotonic();
    const avoided = [...this.#pauses].filter(([, { until }]) => now < until).map(([rejected]) => rejected);
    return avoided.length === 0 ? undefined : new Set(avoided);
  }

  /** How long until the first of the pauses ends; infinity when there is none. */
  untilNext(): number {
    const now = this.#clock.monotonic();
    const left = [...this.#pauses.values()].map(({ until }) => until - now).filter((ms) => ms > 0);
    return Math.min(Number.POSITIVE_INFINITY, ...left);
  }
}
