import type { Lane } from '../job.ts';
import type { Outcome } from '../retry/outcome.ts';

/** When more than this part of the second chances fails, they are made in vain. */
const NEARLY_ALL = 0.9;

/** How the latest runs of a worker went. */
export class Averages {
  #runMs: number | null = null;
  /** The part of the second chances that failed. */
  #failing = 0;

  /** Null before the first run. */
  get runMs(): number | null {
    return this.#runMs;
  }

  get inVain(): boolean {
    return this.#failing > NEARLY_ALL;
  }

  observe(lane: Lane, outcome: Outcome, ms: number): void {
    // No handler was called.
    if (outcome.kind === 'released' && outcome.because.kind !== 'shutdown') return;
    this.#runMs = this.#runMs === null ? ms : smooth(this.#runMs, ms);
    if (lane !== 'fresh') this.#failing = smooth(this.#failing, outcome.kind === 'failed' ? 1 : 0);
  }
}

/** Follows the last ten or so. */
function smooth(before: number, now: number): number {
  return before * 0.9 + now * 0.1;
}
