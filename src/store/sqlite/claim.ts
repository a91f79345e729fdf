import { isRetry, type Lane } from '../../job.ts';
import { LANE, STATE } from '../codes.ts';
import { fillQuotas, fillTurns } from '../fill.ts';
import { CLAIM_BYTES, type Claim, type ClaimRequest, type QueueQuota } from '../store.ts';
import { AT, CLAIMED_COLUMNS, type ClaimedRow, PAYLOAD } from './claimed-row.ts';
import { KEY_AFTER_START } from './keys.ts';
import { type PackedJobs, packJobs } from './packed-claim.ts';
import { NEVER, type Partition, type Tier } from './partitions.ts';
import type { Session } from './session.ts';

/*
 * A claim asks each queue for its tiers, which tell whether anything may start. `fillQuotas` then says how many jobs of
 * which lane to take; a lane takes them tier by tier, and `fillTurns` shares them among the partitions of a tier. What a
 * claim reads is what it takes, and a probe per tier and partition that it takes from.
 */

/** So many partitions of a tier share the places at a time. */
const PARTITIONS_AT_ONCE = 16;
/** So many rows are read at a time: at most this many payloads are read beyond CLAIM_BYTES. */
const ROWS_AT_ONCE = 64;

/* The plus keeps SQLite from planning the statement again for each limit, which takes longer than the rest. */
const DUE = `
  SELECT ${CLAIMED_COLUMNS} FROM jobs
  WHERE partition = ? AND due_at <= ? AND (due_at, seq) > (?, ?)
  ORDER BY due_at, seq LIMIT +?`;
/*
 * No RETURNING: it would copy every row once more. No other process writes during this transaction, so the rows are as
 * they were read, but for what is set here (see #start).
 */
const TAKE = `
  UPDATE jobs SET state = ${STATE.running}, partition = NULL, runs = runs + 1, attempts = attempts + 1,
    worker = ?2, claimed_at = ?3, lease_ends_at = ?3 + ?4, lease_ms = ?4, alone = 0,
    first_started_at = coalesce(first_started_at, ?3), held_key = ${KEY_AFTER_START}
  WHERE seq IN (SELECT value FROM json_each(?1))`;
const RUNNING_RETRIES = `
  SELECT count(*) AS retries, count(*) FILTER (WHERE lane = ${LANE.suspect}) AS suspects FROM jobs
  WHERE state = ${STATE.running} AND lane IN (${LANE.retry}, ${LANE.suspect}) AND queue = ?`;

export interface PackedClaim extends Omit<Claim, 'jobs'> {
  readonly jobs: PackedJobs;
}

export function claim(session: Session, request: ClaimRequest): PackedClaim {
  return new Claiming(session, request).fill();
}

/** Answers a claim that would find nothing without a write transaction; null when there may be something. */
export function claimNothing(session: Session, request: ClaimRequest): PackedClaim | null {
  const claiming = new Claiming(session, request);
  return claiming.mayTake() ? null : claiming.answer();
}

/** A queue, as one claim sees it. */
interface ClaimedQueue {
  readonly quota: QueueQuota;
  /** The number of its name; null when nothing stored uses it. */
  readonly id: number | null;
  readonly tiers: readonly Tier[];
}

class Claiming {
  readonly #session: Session;
  readonly #request: ClaimRequest;
  readonly #queues: Map<string, ClaimedQueue> = new Map();
  readonly #rows: ClaimedRow[] = [];
  #bytes = 0;
  /** A payload did not fit. Nothing more is taken then: a smaller job must not overtake it claim after claim. */
  #isCutShort = false;

  constructor(session: Session, request: ClaimRequest) {
    this.#session = session;
    this.#request = request;
    for (const quota of request.queues) {
      const id = session.strings.find(quota.queue);
      this.#queues.set(quota.queue, { quota, id, tiers: id === null ? [] : session.partitions.tiers(id) });
    }
  }

  mayTake(): boolean {
    return [...this.#queues.values()].some((queue) =>
      queue.tiers.some(
        (tier) =>
          this.#isAdmissible(tier) &&
          (tier.lane === 'suspect') === queue.quota.suspect > 0 &&
          this.#room(queue, tier.lane) > 0,
      ),
    );
  }

  fill(): PackedClaim {
    fillQuotas(this.#request, (queue, lane, count) =>
      this.#takeLane(this.#queues.get(queue) as ClaimedQueue, lane, count),
    );
    return this.answer();
  }

  answer(): PackedClaim {
    const { now } = this.#session;
    return {
      jobs: packJobs(this.#session, this.#rows),
      now,
      nextDueAt: this.#rows.length === this.#request.limit ? null : this.#isCutShort ? now : this.#nextDueAt(),
      suspectsWait: [...this.#queues.values()].some(
        (queue) => this.#hasDueSuspect(queue) && this.#room(queue, 'suspect') > 0,
      ),
    };
  }

  #takeLane(queue: ClaimedQueue, lane: Lane, count: number): number {
    const places = Math.min(count, this.#room(queue, lane));
    let left = places;
    for (const tier of queue.tiers) {
      if (tier.lane !== lane || !this.#isAdmissible(tier)) continue;
      // This ends because each round takes a job or moves every partition that it read out of the admissible ones. A rule
      // that leaves a due job where it is must remember which partitions it has read.
      while (left > 0 && !this.#isCutShort) {
        const partitions = this.#session.partitions.admissible(tier, PARTITIONS_AT_ONCE);
        if (partitions.length === 0) break;
        left -= this.#takeTurns(tier, partitions, left);
      }
    }
    return places - left;
  }

  #takeTurns(tier: Tier, partitions: readonly Partition[], places: number): number {
    const first = this.#rows.length;
    const lastOf = new Map<Partition, ClaimedRow>();
    // Also those that had nothing to give: they were admissible by the clock of another process.
    const read = new Set<Partition>();
    fillTurns(partitions, places, (partition, count) => {
      const before = this.#rows.length;
      this.#read(partition, lastOf.get(partition), count);
      const taken = this.#rows.length - before;
      if (taken > 0) lastOf.set(partition, this.#rows.at(-1) as ClaimedRow);
      if (taken > 0 || !this.#isCutShort) read.add(partition);
      return taken;
    });
    this.#start(first);
    this.#session.partitions.served(tier, [...read]);
    return this.#rows.length - first;
  }

  /** Adds up to `count` due rows of the partition, from the one after `last` on. */
  #read({ id }: Partition, last: ClaimedRow | undefined, count: number): void {
    const { now } = this.#session;
    let after = last;
    for (let left = count; left > 0 && !this.#isCutShort; left -= ROWS_AT_ONCE) {
      const wanted = Math.min(left, ROWS_AT_ONCE);
      const [dueAt, seq] = after ? [after[AT.due_at] as number, after[AT.seq] as number] : [Number.MIN_SAFE_INTEGER, 0];
      const rows = this.#session.arrays(DUE).all(id, now, dueAt, seq, wanted) as unknown as ClaimedRow[];
      for (const row of rows) {
        const bytes = Buffer.byteLength(row[PAYLOAD] as string);
        this.#isCutShort ||= this.#rows.length > 0 && this.#bytes + bytes > CLAIM_BYTES;
        if (this.#isCutShort) return;
        this.#bytes += bytes;
        this.#rows.push(row);
      }
      if (rows.length < wanted) return;
      after = rows.at(-1) as ClaimedRow;
    }
  }

  /** The rows from the index `first` on are taken. */
  #start(first: number): void {
    const { now, strings, running } = this.#session;
    const { leaseMs } = this.#request;
    const worker = strings.intern(this.#request.worker);
    const rows = this.#rows.slice(first);
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
    }
  }

  /** How many more jobs of this lane may start in the queue, over all workers. */
  #room(queue: ClaimedQueue, lane: Lane): number {
    const cap = queue.quota.maxRetriesInFlight ?? Number.POSITIVE_INFINITY;
    if (!isRetry(lane) || (lane === 'retry' && cap === Number.POSITIVE_INFINITY)) return Number.POSITIVE_INFINITY;
    const { retries, suspects } = this.#session.sql(RUNNING_RETRIES).get(queue.id) as {
      retries: number;
      suspects: number;
    };
    if (lane === 'suspect') return suspects > 0 ? 0 : Math.max(0, cap - retries);
    // One place is for the suspect, so that other retries cannot keep it from ever starting.
    const kept = suspects === 0 && this.#hasDueSuspect(queue) ? 1 : 0;
    return Math.max(0, cap - retries - kept);
  }

  #hasDueSuspect({ tiers }: ClaimedQueue): boolean {
    return tiers.some((tier) => tier.lane === 'suspect' && this.#isAdmissible(tier));
  }

  #isAdmissible(tier: Tier): boolean {
    return tier.admissibleAt <= this.#session.now;
  }

  #nextDueAt(): number | null {
    const { partitions } = this.#session;
    let next = NEVER;
    for (const { id, tiers } of this.#queues.values()) {
      if (id === null) continue;
      // What was read before jobs were taken no longer holds.
      for (const tier of this.#rows.length > 0 ? partitions.tiers(id) : tiers)
        next = Math.min(next, partitions.nextAdmissibleAt(tier));
    }
    return next === NEVER ? null : next;
  }
}
