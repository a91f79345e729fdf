import type { Clock, Timer } from '../../clock.ts';
import type { Call, Engine, Result } from './engine.ts';
import { isBusy, toStoreError } from './failure.ts';

/** How long a call waits for the write lock before it is answered with an error. */
const LOCK_PATIENCE_MS = 10_000;
const FIRST_RETRY_MS = 1;
const LONGEST_RETRY_MS = 2;
/**
 * SQLite keeps no queue for its lock: whoever writes without a pause shuts the others out. So while others write too,
 * each leaves them a gap after its transaction, a little longer than they wait between two tries.
 */
const GAP_MS = 3;
/** How long another's commit counts as company. */
const COMPANY_MS = 1_000;
/** More rows than this go to the next transaction, so that other processes get their turn at the lock. */
const ROWS_PER_TRANSACTION = 4_000;
/** The same while others write too: then each call is a transaction of its own, unless it is small. */
const ROWS_IN_COMPANY = 50;

export interface Waiting {
  readonly call: Call;
  answer(result: Result): void;
}

/**
 * Collects calls and runs all that wait as one transaction.
 *
 * The lock is never waited for inside SQLite: BEGIN either gets it or says busy, and between two tries new calls
 * join the batch. So a heartbeat that arrives while another process holds the lock is not queued behind a sleeping
 * claim; it goes out with the very next transaction.
 */
export class GroupCommit {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #onWork: () => void;
  #waiting: (Waiting & { since: number })[] = [];
  /** Until then nothing is tried. */
  #pause: Timer | null = null;
  #retryMs = FIRST_RETRY_MS;
  #companyUntil = 0;

  constructor(engine: Engine, path: string, clock: Clock, onWork: () => void) {
    this.#engine = engine;
    this.#path = path;
    this.#clock = clock;
    this.#onWork = onWork;
  }

  add(waiting: Waiting): void {
    this.#waiting.push({ ...waiting, since: this.#clock.monotonic() });
  }

  flush(): void {
    while (this.#waiting.length > 0 && this.#pause === null) {
      const batch = this.#nextBatch();
      try {
        const { results, madeWork, shared } = this.#engine.execute(batch.map(({ call }) => call));
        this.#retryMs = FIRST_RETRY_MS;
        for (const [index, waiting] of batch.entries()) waiting.answer(results[index] as Result);
        // Another's commit may have brought work as well.
        if (madeWork || shared) this.#onWork();
        this.#leaveGap(shared);
      } catch (error) {
        this.#later(batch, error);
      }
    }
  }

  close(): void {
    this.#pause?.cancel();
    this.#engine.close();
  }

  #nextBatch(): (Waiting & { since: number })[] {
    const most = this.#clock.monotonic() < this.#companyUntil ? ROWS_IN_COMPANY : ROWS_PER_TRANSACTION;
    let rows = 0;
    let count = 0;
    while (count < this.#waiting.length && rows < most) {
      const first = (this.#waiting[count] as Waiting).call.args[0];
      rows += Array.isArray(first) ? first.length : 1;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  #later(batch: (Waiting & { since: number })[], error: unknown): void {
    const now = this.#clock.monotonic();
    const patient = (waiting: { since: number }): boolean => isBusy(error) && now - waiting.since < LOCK_PATIENCE_MS;
    for (const waiting of batch) if (!patient(waiting)) waiting.answer({ error: toStoreError(error, this.#path) });
    this.#waiting.unshift(...batch.filter(patient));
    if (this.#waiting.length === 0) return;
    this.#pauseFor(this.#retryMs * (0.5 + this.#clock.random()));
    this.#retryMs = Math.min(LONGEST_RETRY_MS, this.#retryMs * 2);
  }

  #leaveGap(shared: boolean): void {
    const now = this.#clock.monotonic();
    if (shared) this.#companyUntil = now + COMPANY_MS;
    if (now < this.#companyUntil) this.#pauseFor(GAP_MS);
  }

  #pauseFor(ms: number): void {
    this.#pause = this.#clock.after(ms, () => {
      this.#pause = null;
      this.flush();
    });
  }
}
