import type { Clock, Timer } from '../clock.ts';
import { DISTINCT_JOBS } from '../gate/index.ts';

/** A report that takes longer is not waited for: the jobs start as if it had not been sent. */
const MOST_MS = 1_000;

/**
 * Counts, per resource, the runs in a row that failed by the environment and that no answer of the gate covers yet. From
 * `DISTINCT_JOBS` on, the worker starts no buffered job of the resource before the answer, because it may be that the gate is shut:
 * a gate opens by the failures of so many jobs at least, but for a Retry-After and slow traffic.
 */
export class UnansweredFailures {
  readonly #clock: Clock;
  /** Jobs that may not have started because of `areMany` may start. */
  readonly #onAnswered: () => void;
  readonly #counts: Map<string, number> = new Map();
  /** The part of the counts that the report under way contains. */
  #reported: Map<string, number> = new Map();
  #timer: Timer | null = null;

  constructor(clock: Clock, onAnswered: () => void) {
    this.#clock = clock;
    this.#onAnswered = onAnswered;
  }

  areMany(resource: string | null): boolean {
    return resource !== null && (this.#counts.get(resource) ?? 0) >= DISTINCT_JOBS;
  }

  failed(resource: string): void {
    this.#counts.set(resource, (this.#counts.get(resource) ?? 0) + 1);
    if (this.areMany(resource)) this.#limitWait();
  }

  /** A run showed that the resource answers. */
  alive(resource: string): void {
    this.#counts.delete(resource);
    this.#reported.delete(resource);
  }

  /** A report is sent; it contains all failures so far. */
  reportSent(): void {
    this.#reported = new Map(this.#counts);
  }

  /** The report was answered. Failures since it was sent wait for the next answer. */
  reportAnswered(): void {
    for (const [resource, count] of this.#reported) {
      const since = (this.#counts.get(resource) ?? 0) - count;
      if (since > 0) this.#counts.set(resource, since);
      else this.#counts.delete(resource);
    }
    const wereAny = this.#reported.size > 0;
    this.#reported.clear();
    this.stop();
    if ([...this.#counts.keys()].some((resource) => this.areMany(resource))) this.#limitWait();
    if (wereAny) this.#onAnswered();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #limitWait(): void {
    this.#timer ??= this.#clock.after(MOST_MS, () => this.#giveUp());
  }

  #giveUp(): void {
    this.#timer = null;
    this.#counts.clear();
    this.#reported.clear();
    this.#onAnswered();
  }
}
