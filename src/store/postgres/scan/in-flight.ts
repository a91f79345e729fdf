/** From asking for the time to the first row that bears it. */
const LAG_MS = 200;
/** A transaction that takes longer is not waited for: any long one in the database would hold up the marks. */
const LONGEST_MS = 3_000;

/**
 * Transactions that were under way when claims looked, so that what they write could not be seen. A job falls due when it
 * is written, and is seen when that is committed: usually at once, but seconds later when the server's disk is busy.
 */
export class InFlight {
  /** By transaction: a store time before it began. */
  readonly #since: Map<number, number> = new Map();
  #seenAt: number | null = null;

  /** A claim at store time `now` has read under this snapshot, which is written as `xmin:xmax:xip,xip,...`. */
  see(now: number, snapshot: string): void {
    const [, next, list] = snapshot.split(':') as [string, string, string];
    const running = new Set(list === '' ? [] : list.split(',').map(Number));
    for (const transaction of this.#since.keys()) {
      if (transaction < Number(next) && !running.has(transaction)) this.#since.delete(transaction);
    }
    // One that the claim before did not see began after it.
    for (const transaction of running) {
      if (!this.#since.has(transaction)) this.#since.set(transaction, Math.min(this.#seenAt ?? now, now));
    }
    this.#seenAt = now;
  }

  /** Whatever fell due before this has been seen at store time `now`, if its transaction did not take very long. */
  horizon(now: number): number {
    let horizon = now;
    for (const since of this.#since.values()) if (since > now - LONGEST_MS) horizon = Math.min(horizon, since);
    return horizon - LAG_MS;
  }
}
