import type { ClaimedJob } from '../store.ts';
import type { Database } from './database.ts';
import { Marks } from './marks.ts';
import { Lines, Words } from './words.ts';

/** More than any worker holds; beyond it, settling looks the job up. */
const MOST_IN_HAND = 50_000;

/** Where a job that is settled may have to wait next. */
export interface Held {
  readonly line: number;
  readonly retryQueue: string | null;
}

/** One queue and what this process remembers of it between statements. The verbs' functions all take one. */
export class Session {
  readonly db: Database;
  readonly words: Words;
  readonly lines: Lines;
  readonly waiting: Marks;
  readonly leases: Marks;
  readonly finished: Marks;
  /** What was claimed here and is not settled. Only a hint: the fence is in the write. */
  readonly #inHand: Map<string, Held> = new Map();

  constructor(db: Database) {
    this.db = db;
    this.words = new Words(db);
    this.lines = new Lines(db);
    this.waiting = new Marks(db.clock);
    this.leases = new Marks(db.clock);
    this.finished = new Marks(db.clock);
  }

  hold(job: Pick<ClaimedJob, 'id'>, held: Held): void {
    if (this.#inHand.size >= MOST_IN_HAND) this.#inHand.clear();
    this.#inHand.set(job.id, held);
  }

  held(id: string): Held | undefined {
    return this.#inHand.get(id);
  }

  release(id: string): void {
    this.#inHand.delete(id);
  }
}
