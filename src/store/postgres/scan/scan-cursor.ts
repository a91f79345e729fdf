import { plain } from '../connection/arrays.ts';
import type { Database } from '../connection/database.ts';
import { InFlight } from './in-flight.ts';

/*
 * Where claims begin to read a partition.
 *
 * A row that was claimed stays in the index until it is vacuumed, and while any transaction in the database holds an old
 * snapshot it cannot be. A claim that began at the start of its partition would walk over every job that went before. So
 * this process keeps a cursor per partition:
 *
 *   position  All rows up to here are gone, as far as this process knows. A claim reads from here on, and moves it: to the
 *             last job it took, or, when nothing more is due, to the present; but never closer to the present than
 *             transactions in flight may still write (in-flight.ts).
 *   missed    A range before the position in which a job waits: one that was committed late, was put back to its old place,
 *             or was enqueued with a due time in the past. A claim reads this range alone, and the rest from the position
 *             with the next call. It has a version, which rises whenever a job is added: a claim that began before must not
 *             say that the range is empty.
 *   scannedTo How far back from the position the back-scan under way has got.
 *
 * Five verbs: `ranges` says what a claim reads, `advance` takes over what it found, `rewind` adds a job that this process
 * knows to lie behind the position, `backScan` searches for those that it does not know of, and `scanSoon` lets the next
 * claim do so, because another process has put a job behind the present. Where dead rows have piled
 * up a back-scan is slow. So it runs beside the claims, in parts, for a small part of the time, and claims only wait for it
 * while it is quick.
 */

const BACK_SCAN = 'SELECT * FROM @.back_scan($1::bigint[], $2::bigint[], $3)';

/** How often to scan back; less often when that takes long. */
const SCAN_EVERY_MS = 1_000;
/** Back-scans take no more than this part of the time. */
export const LARGEST_PART = 0.05;
/** Beyond this, or this part of the statement timeout in force, a back-scan goes on the next time. */
const LONGEST_SCAN_MS = 1_000;
const PART_OF_TIMEOUT = 0.25;
/** Claims wait for a back-scan, unless the last one took longer than this. */
const PATIENCE_MS = 50;
/** The least recently used cursor beyond these is forgotten. */
const MOST_CURSORS = 5_000;

/** A place in a partition, which is in the order of due times and then of acceptance. */
export interface Position {
  readonly dueAt: number;
  readonly seq: number;
}

const START: Position = { dueAt: 0, seq: -1 };
const END: Position = { dueAt: Number.MAX_SAFE_INTEGER, seq: 0 };

/** What a claim reads of a partition: the rows after one position, up to another. */
export interface Range {
  readonly from: Position;
  readonly until: Position;
  /** The version of the missed range; null for what comes after the cursor's position. */
  readonly missed: number | null;
}

/** What a claim found in a range. */
export interface Found {
  readonly partition: number;
  readonly range: Range;
  /** The last job it took; null for none. */
  readonly last: Position | null;
  /**
   * Nothing more was due in the range. A claim that leaves a due job where it is must not say so, nor name a `last` behind
   * that job: claims of this process would not meet it again before the next back-scan.
   */
  readonly isExhausted: boolean;
}

interface ScanCursor {
  position: Position;
  missed: { from: Position; until: Position; version: number } | null;
  scannedTo: number | null;
}

type ScanRow = [
  partition: number,
  scannedTo: number,
  now: number,
  dueAt: number | null,
  seq: number | null,
  until: number,
];

/** What the cursors must know of a partition. */
export interface Scanned {
  readonly id: number;
  readonly resource: string | null;
}

export class ScanCursors {
  readonly #db: Database;
  /** The least recently used first. */
  readonly #cursors: Map<number, ScanCursor> = new Map();
  readonly #inFlight: InFlight = new InFlight();
  #versions = 0;
  #scanAt = 0;
  /** Not before this, or back-scans would take more than their part of the time. */
  #soonestAt = 0;
  #scanning: Promise<boolean> | null = null;
  #isSlow = false;
  /** A back-scan that was under way when `scanSoon` was called may have passed the job. */
  #scansAgain = false;
  /** Partitions that the back-scan under way has not been through. */
  #unscanned: Set<number> = new Set();

  constructor(db: Database) {
    this.#db = db;
  }

  /** What a claim should read of these partitions. */
  async ranges(partitions: readonly Scanned[]): Promise<Range[]> {
    const unknown = partitions.filter(({ id }) => !this.#cursors.has(id));
    // Partitions with a resource may be many, and few jobs went through each: those are read from the start.
    const many = unknown.filter(({ resource }) => resource !== null);
    for (const { id } of many) this.#cursors.set(id, { position: START, missed: null, scannedTo: null });
    if (unknown.length > many.length)
      await this.#scan(unknown.filter((one) => one.resource === null).map(({ id }) => id));
    const ranges = partitions.map(({ id }) => this.#use(id));
    for (const [id] of this.#cursors) {
      if (this.#cursors.size <= MOST_CURSORS) break;
      this.#cursors.delete(id);
    }
    return ranges;
  }

  /** Takes over what a claim at store time `now` found, under this snapshot. */
  advance(found: readonly Found[], now: number, snapshot: string): void {
    this.#inFlight.see(now, snapshot);
    const horizon = this.#inFlight.horizon(now);
    for (const { partition, range, last, isExhausted } of found) {
      const cursor = this.#cursors.get(partition);
      if (cursor === undefined) continue;
      if (range.missed === null) {
        const reached = isExhausted ? END : last;
        if (reached !== null) cursor.position = reached.dueAt > horizon ? { dueAt: horizon, seq: 0 } : place(reached);
      } else if (cursor.missed?.version === range.missed) {
        if (isExhausted) cursor.missed = null;
        else if (last !== null) cursor.missed = { ...cursor.missed, from: place(last) };
      }
    }
  }

  /**
   * A job waits at this place, which claims may have passed: the next one should find it. Without `seq`: somewhere at this
   * due time. A claim under way may yet take the position beyond it, so it is added wherever the position is.
   */
  rewind(partition: number, dueAt: number, seq?: number): void {
    const cursor = this.#cursors.get(partition);
    // The first claim that reads a partition looks at all of it.
    if (cursor === undefined) return;
    const from = { dueAt, seq: seq === undefined ? -1 : seq - 1 };
    this.#addMissed(cursor, from, { dueAt, seq: seq ?? Number.MAX_SAFE_INTEGER });
  }

  /**
   * Before each claim: searches for missed rows when it is time, and answers whether there were any. Null when no search
   * is under way, or it would take too long to wait for.
   */
  backScan(): Promise<boolean> | null {
    if (this.#db.clock.monotonic() >= this.#scanAt) this.#scanning ??= this.#scanOnce();
    return this.#isSlow ? null : this.#scanning;
  }

  /** A job may have been put where claims have passed: the next claim scans back, unless that would take too much time. */
  scanSoon(): void {
    this.#scanAt = Math.min(this.#scanAt, this.#soonestAt);
    this.#scansAgain = true;
  }

  #use(partition: number): Range {
    const cursor = this.#cursors.get(partition) as ScanCursor;
    this.#cursors.delete(partition);
    this.#cursors.set(partition, cursor);
    const { position, missed } = cursor;
    // What lies ahead comes in its turn, unless a claim under way has passed it by then.
    if (missed === null || !isBefore(missed.from, position)) return { from: position, until: END, missed: null };
    return { from: missed.from, until: missed.until, missed: missed.version };
  }

  async #scanOnce(): Promise<boolean> {
    const { clock } = this.#db;
    const since = clock.monotonic();
    this.#scansAgain = false;
    const known = [...this.#cursors.keys()];
    let partitions = known.filter((id) => this.#unscanned.has(id));
    if (partitions.length === 0) {
      partitions = known;
      this.#unscanned = new Set(known);
    }
    // What keeps a back-scan from working meets the claim as well, and is reported there.
    const hasFound = await this.#scan(partitions).catch(() => false);
    const now = clock.monotonic();
    this.#isSlow = now - since > PATIENCE_MS;
    this.#soonestAt = now + (now - since) / LARGEST_PART;
    this.#scanAt = this.#scansAgain ? this.#soonestAt : Math.max(now + SCAN_EVERY_MS, this.#soonestAt);
    this.#scanning = null;
    return hasFound;
  }

  async #scan(partitions: readonly number[]): Promise<boolean> {
    if (partitions.length === 0) return false;
    let hasFound = false;
    const positions = new Map(partitions.map((id) => [id, this.#cursors.get(id)?.position]));
    const below = partitions.map((id) => {
      const cursor = this.#cursors.get(id);
      return cursor === undefined ? null : (cursor.scannedTo ?? cursor.position.dueAt + 1);
    });
    const longestMs = Math.min(LONGEST_SCAN_MS, this.#db.statementTimeoutMs * PART_OF_TIMEOUT);
    const rows = await this.#db.lookUp<ScanRow>(BACK_SCAN, [plain(partitions), plain(below), longestMs]);
    for (const [partition, scannedTo, now, dueAt, seq, until] of rows) {
      const first = dueAt === null ? null : { dueAt, seq: (seq as number) - 1 };
      const cursor = this.#cursors.get(partition) ?? {
        position: first ?? { dueAt: this.#inFlight.horizon(now), seq: 0 },
        missed: null,
        scannedTo: null,
      };
      this.#cursors.set(partition, cursor);
      cursor.scannedTo = scannedTo === 0 ? null : scannedTo;
      if (scannedTo === 0) this.#unscanned.delete(partition);
      else this.#unscanned.add(partition);
      const position = positions.get(partition);
      if (position === undefined || first === null || !isBefore(first, position)) continue;
      const end = { dueAt: until, seq: 0 };
      this.#addMissed(cursor, first, isBefore(end, position) ? end : position);
      hasFound = true;
    }
    return hasFound;
  }

  #addMissed(cursor: ScanCursor, from: Position, until: Position): void {
    const { missed } = cursor;
    cursor.missed = {
      from: missed !== null && isBefore(missed.from, from) ? missed.from : from,
      until: missed !== null && isBefore(until, missed.until) ? missed.until : until,
      version: ++this.#versions,
    };
  }
}

/** Without the rest of the job, which would be kept as long as the cursor. */
function place({ dueAt, seq }: Position): Position {
  return { dueAt, seq };
}

function isBefore(a: Position, b: Position): boolean {
  return a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.seq < b.seq);
}
