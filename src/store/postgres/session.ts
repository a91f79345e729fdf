import type { Database } from './connection/database.ts';
import { Kinds, Lines, Workers } from './names.ts';
import { Pruned } from './scan/pruned.ts';
import { Reading } from './scan/scan-cursor.ts';

/** More than any worker holds; beyond it, settling looks the job up. */
const MOST_IN_HAND = 50_000;

/** What is left of a claim's row in `leases`. */
interface Lease {
  readonly id: number;
  held: number;
}

/** Where a job that is settled waits, and what it is: that tells where it may have to wait next. */
export interface Held {
  readonly line: number;
  readonly kind: number;
}

/** A run that was claimed here. */
interface InHand extends Held {
  readonly run: number;
  /** Null for a run that somebody else claimed. */
  readonly lease: Lease | null;
}

/** One queue and what this process remembers of it between statements. The verbs' functions all take one. */
export class Session {
  readonly db: Database;
  readonly workers: Workers;
  readonly lines: Lines;
  readonly kinds: Kinds;
  readonly reading: Reading;
  readonly pruned: Pruned;
  /** Then there may be more waiting than a claim can take. */
  lastClaimWasFilled = false;
  /** What was claimed here and is not settled. Only a hint: the fence is in the write. */
  readonly #inHand: Map<string, InHand> = new Map();
  /** Jobs of a claim are mostly of one line and kind and as far, and so is what is known of them. */
  #last: InHand = { line: 0, kind: 0, run: 0, lease: null };
  #ended: number[] = [];

  constructor(db: Database) {
    this.db = db;
    this.workers = new Workers(db);
    this.lines = new Lines(db);
    this.kinds = new Kinds(db, this.lines);
    this.reading = new Reading(db);
    this.pruned = new Pruned(db.clock);
  }

  hold(id: string, line: number, kind: number, run: number, lease: Lease | null): void {
    if (this.#inHand.size >= MOST_IN_HAND) this.#inHand.clear();
    const { line: lastLine, kind: lastKind, run: lastRun, lease: lastLease } = this.#last;
    if (line !== lastLine || kind !== lastKind || run !== lastRun || lease !== lastLease) {
      this.#last = { line, kind, run, lease };
    }
    this.#inHand.set(id, this.#last);
  }

  held(id: string, run: number): Held | undefined {
    const inHand = this.#inHand.get(id);
    return inHand?.run === run ? inHand : undefined;
  }

  /** This run is over, and what it did to the job is committed. */
  release(id: string, run: number): void {
    const inHand = this.#inHand.get(id);
    // Perhaps it has been claimed again meanwhile.
    if (inHand === undefined || inHand.run !== run) return;
    this.#inHand.delete(id);
    if (inHand.lease !== null && --inHand.lease.held === 0) this.#ended.push(inHand.lease.id);
  }

  /** Leases of which nothing is held any more. Each is told once; one that is not taken away then is found by the next look. */
  endedLeases(): number[] {
    const ended = this.#ended;
    if (ended.length > 0) this.#ended = [];
    return ended;
  }
}
