/*
 * For how long this process could not reach the server. The search for expired leases must know, because no lease could
 * be renewed meanwhile (see ../../expiry.ts).
 *
 * An absence begins with the first call that fails and ends with the next write that succeeds (a server that only reads
 * renews no lease), as long as calls were made in between: a producer whose enqueue failed an hour ago and who has not
 * called since was not absent for an hour. A call that waits, behind a lock for example, is an absence too.
 */

/** Calls further apart than this say nothing about the time between them. */
const LONGEST_GAP_MS = 60_000;
/** A shorter absence cannot have cost a lease. */
const SHORTEST_MS = 1_000;

export type CallEnd = 'written' | 'read' | 'failed';

export class Absence {
  readonly #now: () => number;
  /** When the calls under way began. */
  readonly #underWay: Set<{ readonly since: number }> = new Set();
  #since: number | null = null;
  #lastFailureAt = 0;
  /** The absence that goes on has been reported. */
  #isReported = false;
  /** The longest that ended and was not reported. */
  #endedMs = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  get isOngoing(): boolean {
    return this.#since !== null;
  }

  /** A call begins; answers what to say at its end. */
  begin(): (end: CallEnd) => void {
    const call = { since: this.#now() };
    this.#underWay.add(call);
    return (end) => {
      this.#underWay.delete(call);
      if (end === 'failed') this.failed(call.since);
      else this.#ended(call.since);
      if (end === 'written') this.#written(call.since);
    };
  }

  /** A call failed that was made then, or a connection broke. */
  failed(since: number = this.#now()): void {
    if (this.#since === null || since - this.#lastFailureAt > LONGEST_GAP_MS) this.#since = since;
    this.#lastFailureAt = this.#now();
    this.#isReported = false;
  }

  #written(since: number): void {
    if (this.#since === null) return;
    if (!this.#isReported && since - this.#lastFailureAt <= LONGEST_GAP_MS) this.#ended(this.#since);
    this.#since = null;
    this.#isReported = false;
  }

  #ended(since: number): void {
    this.#endedMs = Math.max(this.#endedMs, this.#now() - since);
  }

  /** How long the longest absence since the last call was; 0 when it was too short to matter. One that goes on stays. */
  take(): number {
    const now = this.#now();
    const waitedMs = Math.max(0, ...[...this.#underWay].map(({ since }) => now - since));
    let awayMs = Math.max(this.#endedMs, waitedMs);
    if (this.#since !== null && now - this.#lastFailureAt <= LONGEST_GAP_MS) {
      awayMs = Math.max(awayMs, now - this.#since);
      this.#isReported = true;
    }
    this.#endedMs = 0;
    return awayMs >= SHORTEST_MS ? Math.ceil(awayMs) : 0;
  }

  /** What was taken could not be made use of. */
  giveBack(awayMs: number): void {
    this.#endedMs = Math.max(this.#endedMs, awayMs);
  }
}
