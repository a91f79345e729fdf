import type { Clock } from '../clock.ts';
import type { ClaimedJob } from '../store/store.ts';

/**
 * Claiming ahead makes claims and settlements large, and it is the number of commits that limits how fast short jobs go:
 * at most this many jobs per running one.
 */
const MOST_AHEAD = 9;
/** The same while claims bring mostly second chances: fresh work must not wait long for a large claim or a full buffer. */
export const MOST_AHEAD_IN_STORM = 2;
/** And none at all for this long after fresh work came in: every job that is claimed ahead makes it wait longer. */
const FRESH_FOR_MS = 1_000;
/** Payloads of a claim travel together; many large ones would not fit into one text. */
const LARGEST_CLAIM = 1_000;
/**
 * While fresh work comes in and nearly all second chances fail again, these are only probed, because fresh work waits for
 * every claim and settlement that is under way: a claim takes this many jobs, and two for each fresh one that the claim
 * before brought; and when it brings mostly second chances, the next one comes after a rest of thrice its time.
 */
const PROBES = 10;
const REST_PER_PROBE = 3;

/**
 * Keeps second chances out of the way of fresh work: how far ahead, how many at once and how soon to claim, by what the
 * last claim brought.
 */
export class Storm {
  readonly #clock: Clock;
  readonly #isInVain: () => boolean;
  #fresh = 0;
  #secondChances = 0;
  /** Until then, fresh work that is found may be new. */
  #newsUntil = 0;
  /** Until then, fresh work counts as coming in. */
  #freshUntil = 0;
  #restUntil = 0;

  /** @param isInVain whether nearly all second chances have failed of late */
  constructor(clock: Clock, isInVain: () => boolean) {
    this.#clock = clock;
    this.#isInVain = isInVain;
  }

  /** Whether the last claim brought mostly second chances. */
  get blows(): boolean {
    return this.#secondChances > this.#fresh;
  }

  /** Somebody may have made work; a store cannot always tell whether it was that. */
  newWork(): void {
    this.#newsUntil = this.#clock.monotonic() + FRESH_FOR_MS;
  }

  claimed(jobs: readonly Pick<ClaimedJob, 'lane'>[], tookMs: number): void {
    this.#fresh = jobs.filter(({ lane }) => lane === 'fresh').length;
    this.#secondChances = jobs.length - this.#fresh;
    this.#restUntil = this.#clock.monotonic() + REST_PER_PROBE * tookMs;
    const now = this.#clock.monotonic();
    if (this.#fresh > 0 && now < this.#newsUntil) this.#freshUntil = now + FRESH_FOR_MS;
  }

  /** Jobs per place. */
  mostAhead(): number {
    if (!this.blows) return MOST_AHEAD;
    return this.#freshComesIn() ? 0 : MOST_AHEAD_IN_STORM;
  }

  mostAtOnce(): number {
    return this.#probes() ? Math.min(LARGEST_CLAIM, PROBES + 2 * this.#fresh) : LARGEST_CLAIM;
  }

  /** How long to leave second chances alone; news of work is a reason not to. */
  restMs(): number {
    return this.blows && this.#probes() ? Math.max(0, this.#restUntil - this.#clock.monotonic()) : 0;
  }

  #probes(): boolean {
    return this.#secondChances > 0 && this.#freshComesIn() && this.#isInVain();
  }

  #freshComesIn(): boolean {
    return this.#clock.monotonic() < this.#freshUntil;
  }
}
