import type { Clock } from '../clock.ts';

/*
 * A worker that has rejected a payload would most likely reject it again, and others like it. So for a while it leaves the
 * rejected payloads of that name to other workers, among which may be one of another deploy that can read them. All other jobs
 * of the name it takes as ever. The pause grows with each time that the worker tried and rejected one again; a worker that
 * starts again tries at once.
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
  readonly #pauses: Map<string, Pause> = new Map();

  constructor(clock: Clock, giveUpAfterMs: number) {
    this.#clock = clock;
    this.#longestMs = Math.max(1, Math.min(LONGEST_PAUSE_MS, giveUpAfterMs / LOOKS));
  }

  /** A payload of this name was rejected. */
  add(name: string): void {
    const now = this.#clock.monotonic();
    const last = this.#pauses.get(name);
    // One that it had claimed before, or that came for the first time.
    if (last !== undefined && now < last.until) return;
    const ms = Math.min(this.#longestMs, last === undefined ? SHORTEST_PAUSE_MS : last.ms * 2);
    this.#pauses.set(name, { ms, until: now + ms });
  }

  /** The names whose rejected payloads it leaves to others now; undefined for none. */
  avoided(): ReadonlySet<string> | undefined {
    if (this.#pauses.size === 0) return undefined;
    const now = this.#clock.monotonic();
    const names = [...this.#pauses].filter(([, { until }]) => now < until).map(([name]) => name);
    return names.length === 0 ? undefined : new Set(names);
  }

  /** How long until the first of the pauses ends; infinity when there is none. */
  untilNext(): number {
    const now = this.#clock.monotonic();
    const left = [...this.#pauses.values()].map(({ until }) => until - now).filter((ms) => ms > 0);
    return Math.min(Number.POSITIVE_INFINITY, ...left);
  }
}
