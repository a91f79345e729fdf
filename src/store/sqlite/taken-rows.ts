import { STATE } from '../codes.ts';
import { fillTurns } from '../fill.ts';
import { CLAIM_BYTES, type ClaimRequest } from '../store.ts';
import { AT, CLAIMED_COLUMNS, type ClaimedRow, LIMITS, PAYLOAD } from './claimed-row.ts';
import { KEY_AFTER_START } from './keys.ts';
import { LimitUse } from './limit-use.ts';
import type { Partition } from './partitions.ts';
import type { Session } from './session.ts';

/** So many rows are read at a time: at most this many payloads are read beyond CLAIM_BYTES. */
const ROWS_AT_ONCE = 64;

/*
 * The rows of a partition that may be taken: for `claim`, `claimLimited` and `claimGated`. Before they read rows, claims
 * ask the times of tiers and partitions whether something is due; a rule that skips due rows must hold there as well
 * (`ClaimedQueue.isAdmissible`, `Partitions.nextAdmissibleAt`).
 *
 * The plus keeps SQLite from planning the statement again for each limit, which takes longer than the rest.
 */
const DUE_JOBS = `
  SELECT ${CLAIMED_COLUMNS} FROM jobs
  WHERE partition = ? AND due_at <= ? AND (due_at, seq) > (?, ?)
  ORDER BY due_at, seq LIMIT +?`;
const BY_SEQ = `SELECT ${CLAIMED_COLUMNS} FROM jobs WHERE seq = ?`;
/*
 * No RETURNING: it would copy every row once more. No other process writes during this transaction, so the rows are as
 * they were read, but for what is set here (see #start).
 */
const TAKE = `
  UPDATE jobs SET state = ${STATE.running}, partition = NULL, runs = runs + 1, attempts = attempts + 1,
    worker = ?2, claimed_at = ?3, lease_ends_at = ?3 + ?4, lease_ms = ?4, alone = 0,
    first_started_at = coalesce(first_started_at, ?3), held_key = ${KEY_AFTER_START}
  WHERE seq IN (SELECT value FROM json_each(?1))`;

/** The jobs that one claim takes. */
export class TakenRows {
  readonly rows: ClaimedRow[] = [];
  readonly limits: LimitUse;
  readonly #session: Session;
  readonly #request: ClaimRequest;
  #bytes = 0;
  /** A payload did not fit. Nothing more is taken then: a smaller job must not overtake it claim after claim. */
  #isCutShort = false;

  constructor(session: Session, request: ClaimRequest) {
    this.#session = session;
    this.#request = request;
    this.limits = new LimitUse(session);
  }

  get isCutShort(): boolean {
    return this.#isCutShort;
  }

  /**
   * Takes up to `places` due jobs from these partitions by turns. Answers those that it has read to the end or taken from,
   * also when they had nothing to give: they were admissible by the clock of another process. `roomOf`: how many of so many
   * jobs the limits of a partition let start; those that let none start are answered apart.
   */
  takeTurns<P extends Partition>(
    partitions: readonly P[],
    places: number,
    roomOf?: (partition: P, count: number) => number,
  ): { taken: number; read: P[]; withoutRoom: P[] } {
    const first = this.rows.length;
    const lastOf = new Map<P, ClaimedRow>();
    const read = new Set<P>();
    const withoutRoom: P[] = [];
    fillTurns(partitions, places, (partition, count) => {
      const wanted = roomOf === undefined ? count : roomOf(partition, count);
      if (wanted === 0) {
        if (!read.has(partition)) withoutRoom.push(partition);
        return 0;
      }
      const before = this.rows.length;
      this.#read(partition, lastOf.get(partition), wanted);
      const taken = this.rows.length - before;
      if (taken > 0) lastOf.set(partition, this.rows.at(-1) as ClaimedRow);
      if (taken > 0 || !this.#isCutShort) read.add(partition);
      return taken;
    });
    this.#start(first);
    return { taken: this.rows.length - first, read: [...read], withoutRoom };
  }

  /** Takes one waiting job by its number. */
  takeOne(seq: number): void {
    this.#add(this.#session.arrays(BY_SEQ).get(seq) as unknown as ClaimedRow);
    this.#start(this.rows.length - 1);
  }

  /** Adds up to `count` due rows of the partition, from the one after `last` on. */
  #read({ id }: Partition, last: ClaimedRow | undefined, count: number): void {
    const { now } = this.#session;
    let after = last;
    for (let left = count; left > 0 && !this.#isCutShort; left -= ROWS_AT_ONCE) {
      const wanted = Math.min(left, ROWS_AT_ONCE);
      const [dueAt, seq] = after ? [after[AT.due_at] as number, after[AT.seq] as number] : [Number.MIN_SAFE_INTEGER, 0];
      const rows = this.#session.arrays(DUE_JOBS).all(id, now, dueAt, seq, wanted) as unknown as ClaimedRow[];
      for (const row of rows) {
        const bytes = Buffer.byteLength(row[PAYLOAD] as string);
        this.#isCutShort ||= this.rows.length > 0 && this.#bytes + bytes > CLAIM_BYTES;
        if (this.#isCutShort) return;
        this.#bytes += bytes;
        this.#add(row);
      }
      if (rows.length < wanted) return;
      after = rows.at(-1) as ClaimedRow;
    }
  }

  #add(row: ClaimedRow): void {
    this.rows.push(row);
    const limits = row[LIMITS] as string | null;
    if (limits !== null) this.limits.reserve(row[AT.seq] as number, this.limits.parse(limits), row[AT.lane] as number);
  }

  /** The rows from the index `first` on are taken. */
  #start(first: number): void {
    const { now, strings, running } = this.#session;
    const { leaseMs } = this.#request;
    const worker = strings.intern(this.#request.worker);
    const rows = this.rows.slice(first);
    this.#session.sql(TAKE).run(JSON.stringify(rows.map((row) => row[AT.seq])), worker, now, leaseMs);
    for (const row of rows) {
      row[AT.runs] = (row[AT.runs] as number) + 1;
      row[AT.attempts] = (row[AT.attempts] as number) + 1;
      row[AT.first_started_at] ??= now;
      row[AT.worker] = worker;
      row[AT.claimed_at] = now;
      row[AT.lease_ends_at] = now + leaseMs;
      row[AT.alone] = 0;
      running.add(row);
      const limits = row[LIMITS] as string | null;
      if (limits !== null) this.limits.write(row[AT.seq] as number, this.limits.parse(limits));
    }
  }
}
