import type { Clock, Timer } from '../clock.ts';
import { ProblemError } from './problem.ts';

/*
 * Bytes that requests may hold at once: of bodies that are read, of what they become, and of answers until they are sent. A
 * request that finds no room waits, the first come first; then it is answered 503 and sent again later.
 *
 * A request takes from `bodies` first and from `work` after that, and waits for nothing while it holds `work`: so none waits
 * for one that waits for it.
 */

/** So long a request waits for room. */
const WAITS_MS = 10_000;

/** A share of a budget. Given back in parts or whole; twice does no harm. */
export class Share {
  #bytes: number;
  readonly #giveBack: (bytes: number) => void;

  constructor(bytes: number, giveBack: (bytes: number) => void) {
    this.#bytes = bytes;
    this.#giveBack = giveBack;
  }

  /** Keeps no more than this. */
  shrink(bytes: number): void {
    const back = this.#bytes - Math.min(this.#bytes, bytes);
    this.#bytes -= back;
    if (back > 0) this.#giveBack(back);
  }

  release(): void {
    this.shrink(0);
  }
}

interface Waiter {
  readonly bytes: number;
  readonly start: (share: Share) => void;
}

export class Budget {
  readonly #total: number;
  readonly #clock: Clock;
  readonly #waiting: Set<Waiter> = new Set();
  #free: number;

  constructor(total: number, clock: Clock) {
    this.#total = total;
    this.#clock = clock;
    this.#free = total;
  }

  /** A request that needs more than there is gets all there is, alone. */
  take(wanted: number): Promise<Share> {
    const bytes = Math.min(wanted, this.#total);
    if (this.#waiting.size === 0 && bytes <= this.#free) return Promise.resolve(this.#share(bytes));
    return new Promise((resolve, reject) => {
      const timeout: Timer = this.#clock.after(WAITS_MS, () => {
        this.#waiting.delete(waiter);
        this.#startNext();
        reject(tooBusy());
      });
      const waiter: Waiter = {
        bytes,
        start: (share) => {
          timeout.cancel();
          resolve(share);
        },
      };
      this.#waiting.add(waiter);
    });
  }

  #share(bytes: number): Share {
    this.#free -= bytes;
    return new Share(bytes, (back) => {
      this.#free += back;
      this.#startNext();
    });
  }

  #startNext(): void {
    for (const waiter of this.#waiting) {
      if (waiter.bytes > this.#free) return;
      this.#waiting.delete(waiter);
      waiter.start(this.#share(waiter.bytes));
    }
  }
}

function tooBusy(): ProblemError {
  const text = 'Too much is read or written at once. Send the same request again later: it is safe to repeat.';
  return new ProblemError(503, 'TOO_BUSY', text, { headers: { 'retry-after': '2' } });
}

const MIB = 1_048_576;
/** What a list of jobs takes while it is made: 8 MiB of payloads, and as much for their values (store/page.ts). */
export const PAGE_IN_MEMORY: number = 16 * MIB;
/** What one job takes: payload, progress and result. */
export const JOB_IN_MEMORY: number = MIB;
/** What thousands of rows take. */
export const ROWS_IN_MEMORY: number = 8 * MIB;

/** A container of a parsed text: an empty object in a list. */
const BYTES_PER_VALUE = 64;
/** What holds no more than this is not worth a wait. */
export const SMALL: number = 256 * 1_024;

/** The budgets of one server. With them it lives in a heap of 512 MiB: what is parsed, copied and written takes several times its bytes. */
export class Budgets {
  readonly #small: Budget;
  readonly #large: Budget;
  readonly #work: Budget;

  constructor(clock: Clock) {
    // Of their own, so that heartbeats get through beside large batches.
    this.#small = new Budget(16 * MIB, clock);
    this.#large = new Budget(32 * MIB, clock);
    this.#work = new Budget(64 * MIB, clock);
  }

  /** For a body, until it is parsed. */
  body(bytes: number): Promise<Share> {
    return bytes <= SMALL ? this.#small.take(bytes) : this.#large.take(bytes);
  }

  /** For what a body became, and for the answer until it is sent. */
  work(values: number, answerBytes: number): Promise<Share> {
    const bytes = values * BYTES_PER_VALUE + answerBytes;
    return bytes <= SMALL ? Promise.resolve(new Share(0, () => {})) : this.#work.take(bytes);
  }
}
