import type { Clock, Timer } from '../../clock.ts';
import type { Call, Engine, Result } from './engine.ts';
import { isBusy, toStoreError } from './failure.ts';
import { bytesOfCall, PART_BYTES } from './parts.ts';

/** How long a call waits for the write lock before it is answered with an error. */
const LOCK_TIMEOUT_MS = 10_000;
const RETRY_MS = 1;
/**
 * SQLite keeps no queue for its lock: a process that writes without a pause shuts the others out. So while there are other
 * writers, each leaves them a gap after its transaction, a little longer than they wait between two tries.
 */
const GAP_MS = 2;
/** How long after its last commit another process counts as a writer. */
const CONTENTION_WINDOW_MS = 1_000;
/** More rows than this, or more bytes than one part, go to the next transaction: other processes get their turn at the lock. */
const ROWS_PER_TRANSACTION = 4_000;
/** The same while there are other writers: then a call with more rows is a transaction of its own. */
const ROWS_UNDER_CONTENTION = 50;

export interface Waiting {
  readonly call: Call;
  answer(result: Result): void;
}

interface Kept extends Waiting {
  readonly since: number;
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
  #waiting: Kept[] = [];
  /** Until then nothing is tried. */
  #pause: Timer | null = null;
  #contentionUntil = 0;
  /** The last transaction was of small calls, while a large one waited. */
  #hasPassed = false;

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
        this.#hasPassed = batch.every(isSmall) && this.#waiting.some(isLarge);
        for (const [index, waiting] of batch.entries()) waiting.answer(results[index] as Result);
        // The commit of another process may have brought work as well.
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

  #nextBatch(): Kept[] {
    if (this.#clock.monotonic() >= this.#contentionUntil) return this.#take(() => true, ROWS_PER_TRANSACTION);
    // Small calls go first, but once only: then the large one has its turn.
    const mayPass = !this.#hasPassed && this.#waiting.some(isSmall);
    const large = mayPass ? -1 : this.#waiting.findIndex(isLarge);
    return large < 0 ? this.#take(isSmall, ROWS_UNDER_CONTENTION) : this.#waiting.splice(large, 1);
  }

  /** The first ones that may go, until they have so many rows together, or more bytes than a part. */
  #take(mayGo: (waiting: Kept) => boolean, most: number): Kept[] {
    let rows = 0;
    let bytes = 0;
    const taken: Kept[] = [];
    this.#waiting = this.#waiting.filter((waiting) => {
      if (rows >= most || bytes >= PART_BYTES || !mayGo(waiting)) return true;
      rows += rowsOf(waiting);
      bytes += bytesOfCall(waiting.call);
      taken.push(waiting);
      return false;
    });
    return taken;
  }

  #later(batch: Kept[], error: unknown): void {
    const now = this.#clock.monotonic();
    const mayWait = (waiting: Kept): boolean => isBusy(error) && now - waiting.since < LOCK_TIMEOUT_MS;
    for (const waiting of batch) if (!mayWait(waiting)) waiting.answer({ error: toStoreError(error, this.#path) });
    this.#waiting.unshift(...batch.filter(mayWait));
    if (this.#waiting.length === 0) return;
    this.#pauseFor(RETRY_MS * (0.5 + this.#clock.random()));
  }

  #leaveGap(shared: boolean): void {
    const now = this.#clock.monotonic();
    if (shared) this.#contentionUntil = now + CONTENTION_WINDOW_MS;
    if (now < this.#contentionUntil) this.#pauseFor(GAP_MS);
  }

  #pauseFor(ms: number): void {
    this.#pause = this.#clock.after(ms, () => {
      this.#pause = null;
      this.flush();
    });
  }
}

function isLarge(waiting: Kept): boolean {
  return rowsOf(waiting) > ROWS_UNDER_CONTENTION;
}

function isSmall(waiting: Kept): boolean {
  return !isLarge(waiting);
}

function rowsOf({ call: { args } }: Kept): number {
  return Array.isArray(args[0]) ? args[0].length : 1;
}
