import type { Database } from './database.ts';
import { Marks } from './marks.ts';
import { Kinds, Lines, Workers } from './names.ts';

/** More than any worker holds; beyond it, settling looks the job up. */
const MOST_IN_HAND = 50_000;

/** Where a job that is settled waits, and what it is: that tells where it may have to wait next. */
export interface Held {
  readonly line: number;
  readonly kind: number;
}

/** One queue and what this process remembers of it between statements. The verbs' functions all take one. */
export class Session {
  readonly db: Database;
  readonly workers: Workers;
  readonly lines: Lines;
  readonly kinds: Kinds;
  readonly waiting: Marks;
  readonly finished: Marks;
  /** What was claimed here and is not settled. Only a hint: the fence is in the write. */
  readonly #inHand: Map<string, Held> = new Map();
  #lastHeld: Held = { line: 0, kind: 0 };

  constructor(db: Database) {
    this.db = db;
    this.workers = new Workers(db);
    this.lines = new Lines(db);
    this.kinds = new Kinds(db, this.lines);
    this.waiting = new Marks(db.clock);
    this.finished = new Marks(db.clock);
  }

  hold(id: string, line: number, kind: number): void {
    if (this.#inHand.size >= MOST_IN_HAND) this.#inHand.clear();
    // Jobs of a claim are mostly of one line and kind.
    if (line !== this.#lastHeld.line || kind !== this.#lastHeld.kind) this.#lastHeld = { line, kind };
    this.#inHand.set(id, this.#lastHeld);
  }

  held(id: string): Held | undefined {
    return this.#inHand.get(id);
  }

  release(id: string): void {
    this.#inHand.delete(id);
  }
}
