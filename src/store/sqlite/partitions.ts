import { type Lane, lanes } from '../../job.ts';
import { parseLimits } from '../../limit/limit.ts';
import { parseQueue } from '../aside.ts';
import { LANE } from '../codes.ts';
import { limitedQueue } from '../limited-queue.ts';
import type { HoldTarget } from '../store.ts';
import { rootOf } from '../turns.ts';
import {
  heldUntil,
  NEVER,
  type PartitionSession,
  type Restriction,
  restrictionsOf,
  writeHold,
} from './restrictions.ts';

/*
 * A partition is a row for as long as a job waits in it. Its `admissible_at` is the one time that a claim compares with
 * its own: from then on the partition's first job may start, because it is due and no hold is in the way.
 *
 *   a job enters      the row is made, or admissible_at falls to when that job may start
 *   a claim serves it the row goes when no job is left; else admissible_at rises to when the next job may start, and when
 *                     that is now, the partition goes behind the last admissible one of its tier
 *   a job leaves      the same, but the partition keeps its turn
 *   hold, release,    of a resource: the restriction of its partitions changes, and their times with it. A held queue is
 *   its gate changes  left as it is, however many partitions it has: `tiers` tells that none of it is admissible
 *
 * A partition is gated when its jobs must ask the gate of their resource. Its admissible_at and held_until are NEVER then,
 * so that ordinary claims pass over it, and `gated_at` has the time from which `claimGated` may ask for its first job.
 * Gated partitions have an index of their own (see gated-partitions.ts).
 *
 * A partition of jobs behind limits waits for a key that had no room when it was last read: its held_until is the time from
 * which the rate of the key allows a start, or NEVER while another job must end first, and `waits_for` is the key. It is
 * brought back when the key may have room (limit-waits.ts). Whatever else writes held_until may let it be read sooner than
 * that; the claim that reads it then lets it wait again.
 *
 * SQLite has one writer, so each of these is exact when its transaction ends. A tier is the partitions of one queue, lane,
 * priority and line (../turns.ts). In the order of (admissible_at, turn), those of its partitions that are admissible come
 * first, and of those the least recently served.
 */

/** What the jobs of a partition have in common. All but the lane and the priority are numbers of interned strings. */
export interface PartitionKey {
  readonly queue: number;
  readonly lane: number;
  readonly priority: number;
  /** 0 for none. */
  readonly resource: number;
  /** Of the jobs: it parts them in the lanes `retry` and `redrive`, so that one failing name does not delay the others. */
  readonly name: number;
  /** As `limitsText` writes them; null or left out for none. */
  readonly limits?: string | null;
}

export interface Tier {
  readonly queue: number;
  readonly lane: Lane;
  readonly priority: number;
  /** The number of the name that makes the line; 0 for fresh jobs without a resource. */
  readonly line: number;
  /** When its first partition becomes admissible, and what else says which is the first. */
  readonly admissibleAt: number;
  readonly turn: number;
  readonly first: number;
}

export interface Partition extends Restriction {
  readonly id: number;
  readonly admissibleAt: number;
  /** Null when it is not gated. */
  readonly gatedAt: number | null;
  readonly limits: string | null;
}

/** Why a partition may not start a job before a time, or before it is brought back. */
export interface Wait {
  readonly until: number;
  /** The key that has no room, as `limitsText` writes it. */
  readonly for: string;
}

const COLUMNS = `
  id, held_until AS heldUntil, gate_at AS gateAt, admissible_at AS admissibleAt, gated_at AS gatedAt, limits`;
const IN_TIER = 'queue = ? AND lane = ? AND priority = ? AND line = ?';
const FIND = `SELECT ${COLUMNS} FROM partitions WHERE queue = ? AND lane = ? AND priority = ? AND resource = ? AND name = ?`;
const ADD = `
  INSERT INTO partitions (queue, lane, priority, resource, name, line, held_until, gate_at, admissible_at, gated_at, turn)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) RETURNING ${COLUMNS}`;
const FIND_LIMITED = `
  SELECT ${COLUMNS} FROM partitions
  WHERE queue = ? AND lane = ? AND priority = ? AND resource = ? AND limited_name = ? AND limits = ?`;
const ADD_LIMITED = `
  INSERT INTO partitions (id, name, queue, lane, priority, resource, limited_name, limits,
    line, held_until, gate_at, admissible_at, gated_at, turn)
  SELECT next, -next, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0 FROM (SELECT coalesce(max(id), 0) + 1 AS next FROM partitions)
  RETURNING ${COLUMNS}`;
const ADD_LIMITED_QUEUE = 'INSERT OR IGNORE INTO limited_queues (queue, limited, is_aside) VALUES (?, ?, ?)';
const ADD_LIST = 'INSERT OR IGNORE INTO limit_lists (name, key, limits) VALUES (?, ?, ?)';
const WAIT = `
  UPDATE partitions SET held_until = ?2, admissible_at = ?3, waits_for = ?4, waits_turn = (
    SELECT coalesce(max(last.waits_turn), 0) + 1 FROM partitions last
    WHERE last.waits_for = ?4 AND last.lane = partitions.lane AND last.priority = partitions.priority)
  WHERE id = ?1`;
const MOVE = 'UPDATE partitions SET admissible_at = ?, turn = ? WHERE id = ?';
const SET_TURN = 'UPDATE partitions SET turn = ? WHERE id = ?';
const MOVE_GATED = 'UPDATE partitions SET gated_at = ? WHERE id = ?';
const REMOVE = 'DELETE FROM partitions WHERE id = ?';
const BY_ID = `SELECT ${COLUMNS} FROM partitions WHERE id = ?`;
const FIRST_DUE = 'SELECT due_at FROM jobs WHERE partition = ? ORDER BY due_at LIMIT 1';

/* Behind all partitions of the tier: with (lane, priority, line) alone, SQLite would walk over them. */
const NEXT_TIER = `
  SELECT lane, priority, line, admissible_at AS admissibleAt, turn, id AS first FROM partitions
  WHERE queue = ? AND (lane, priority, line, admissible_at) > (?, ?, ?, ${NEVER} + 1)
  ORDER BY lane, priority, line, admissible_at, turn LIMIT 1`;
const NEXT_IN_TIER = `
  SELECT admissible_at AS at FROM partitions WHERE ${IN_TIER} AND admissible_at > ? ORDER BY admissible_at LIMIT 1`;
const ADMISSIBLE = `
  SELECT ${COLUMNS} FROM partitions WHERE ${IN_TIER} AND admissible_at <= ? ORDER BY admissible_at, turn LIMIT +?`;
const LAST_ADMISSIBLE = `
  SELECT id, admissible_at AS admissibleAt, turn FROM partitions WHERE ${IN_TIER} AND admissible_at <= ?
  ORDER BY admissible_at DESC, turn DESC LIMIT 1`;

const OF_RESOURCE = `SELECT ${COLUMNS}, lane FROM partitions WHERE resource = ?`;
/* A gated partition keeps its turn among those of its resource. */
const RESTRICT = `
  UPDATE partitions SET held_until = ?2, gate_at = ?3, admissible_at = ?4, gated_at = ?5, waits_for = ?6,
    turn = CASE WHEN ?3 IS NULL THEN 0 ELSE turn END
  WHERE id = ?1`;

const partsByName: readonly number[] = [LANE.retry, LANE.redrive];

/** A call's view of the partitions: what it has found once, it need not look up for its next job. */
export class Partitions {
  readonly #session: PartitionSession;
  readonly #found: Map<string, Partition> = new Map();

  constructor(session: PartitionSession) {
    this.#session = session;
  }

  /** When partitions were moved in another way than by `enter`, and after a rollback. */
  forget(): void {
    this.#found.clear();
  }

  /** Lets a job that is due at `dueAt` wait in its partition, whose number it answers. Write transactions only. */
  enter(key: PartitionKey, dueAt: number): number {
    const { lane, priority, resource } = key;
    // The trial of a suspect asks no limit.
    const limits = lane === LANE.suspect ? null : (key.limits ?? null);
    const queue = limits === null ? key.queue : this.#limitedQueue(key.queue, limits);
    const name = partsByName.includes(lane) ? key.name : 0;
    const parts = [queue, lane, priority, resource, name, ...(limits === null ? [] : [limits])];
    const text = parts.join(' ');
    const found = this.#found.get(text) ?? this.#get(limits === null ? FIND : FIND_LIMITED, ...parts);
    const restriction = found ?? restrictionsOf(this.#session, resource)(lane);
    const dueFrom = Math.max(dueAt, this.#session.now);
    const { heldUntil, gateAt } = restriction;
    const admissibleAt = Math.max(heldUntil, dueFrom);
    const gatedAt = gateAt === null ? null : Math.max(gateAt, dueFrom);
    let partition = found;
    if (!found) {
      const times = [heldUntil, gateAt, admissibleAt, gatedAt] as const;
      if (limits !== null) this.#listLimited(key.queue, queue, limits);
      partition = this.#get(limits === null ? ADD : ADD_LIMITED, ...parts, name || this.#rootOf(resource), ...times);
    } else if (admissibleAt < found.admissibleAt) {
      this.#move(found.id, admissibleAt, 0);
      partition = { ...found, admissibleAt };
    } else if (gatedAt !== null && gatedAt < (found.gatedAt as number)) {
      this.#session.sql(MOVE_GATED).run(gatedAt, found.id);
      partition = { ...found, gatedAt };
    }
    this.#found.set(text, partition as Partition);
    return (partition as Partition).id;
  }

  /** A job that waits in the partition is due at `dueAt`, sooner than before. Write transactions only. */
  fallsDue(id: number, dueAt: number): void {
    const { heldUntil, gateAt, admissibleAt, gatedAt } = this.#get(BY_ID, id) as Partition;
    const dueFrom = Math.max(dueAt, this.#session.now);
    this.forget();
    if (Math.max(heldUntil, dueFrom) < admissibleAt) this.#move(id, Math.max(heldUntil, dueFrom), 0);
    if (gateAt !== null && Math.max(gateAt, dueFrom) < (gatedAt as number)) {
      this.#session.sql(MOVE_GATED).run(Math.max(gateAt, dueFrom), id);
    }
  }

  /** A job has left the partition in another way than by a claim. Write transactions only. */
  leave(id: number): void {
    const partition = this.#get(BY_ID, id);
    if (!partition) return;
    const startsAt = this.#startOfFirst(partition);
    this.forget();
    if (startsAt === null) this.#session.sql(REMOVE).run(id);
    else if (partition.gateAt !== null) this.#moveGated(partition);
    else if (startsAt > this.#session.now && startsAt !== partition.admissibleAt) this.#move(id, startsAt, 0);
  }

  /** The tiers of a queue in which jobs wait, by lane, priority and line. Those of jobs aside are held by the queue they were in. */
  tiers(queue: number, heldBy: number = queue): Tier[] {
    const tiers: Tier[] = [];
    const queueHeldUntil = heldUntil(this.#session, 'queue', heldBy);
    let [lane, priority, line] = [-1, 0, 0];
    for (;;) {
      const row = this.#session.sql(NEXT_TIER).get(queue, lane, priority, line);
      if (!row) return tiers;
      const next = row as unknown as Omit<Tier, 'queue' | 'lane'> & { readonly lane: number };
      ({ lane, priority, line } = next);
      const admissibleAt = Math.max(queueHeldUntil, next.admissibleAt);
      tiers.push({ ...next, queue, lane: lanes[lane] as Lane, admissibleAt });
    }
  }

  /** When a further partition of the tier becomes admissible; NEVER when none does by itself. */
  nextAdmissibleAt({ queue, lane, priority, line, admissibleAt }: Tier): number {
    const { now } = this.#session;
    if (admissibleAt > now) return admissibleAt;
    const next = this.#session.sql(NEXT_IN_TIER).get(queue, LANE[lane], priority, line, now);
    return (next as { at: number } | undefined)?.at ?? NEVER;
  }

  /** The least recently served first. */
  admissible({ queue, lane, priority, line }: Tier, limit: number): Partition[] {
    const rows = this.#session.sql(ADMISSIBLE).all(queue, LANE[lane], priority, line, this.#session.now, limit);
    return rows as unknown as Partition[];
  }

  /** A claim has taken jobs from these partitions of a tier, in this order. */
  served({ queue, lane, priority, line }: Tier, partitions: readonly Partition[]): void {
    const { now } = this.#session;
    let last: { readonly id: number; readonly admissibleAt: number; readonly turn: number } | undefined;
    for (const partition of partitions) {
      const { id } = partition;
      const startsAt = this.#startOfFirst(partition);
      if (startsAt === null) this.#session.sql(REMOVE).run(id);
      else if (startsAt > now) this.#move(id, startsAt, 0);
      else {
        last ??= this.#session.sql(LAST_ADMISSIBLE).get(queue, LANE[lane], priority, line, now) as NonNullable<
          typeof last
        >;
        if (last.id === id) continue;
        last = { ...last, id, turn: last.turn + 1 };
        this.#move(id, last.admissibleAt, last.turn);
      }
    }
  }

  /** A key of its limits has no room: no claim reads it before that is over. */
  wait(partition: Partition, { until, for: key }: Wait): void {
    const { id, heldUntil } = partition;
    const dueAt = this.#firstDueAt(id);
    this.forget();
    if (dueAt === null) this.#session.sql(REMOVE).run(id);
    else {
      const held = Math.max(heldUntil, until);
      this.#session.sql(WAIT).run(id, held, Math.max(held, dueAt), key);
    }
  }

  /** The key for which these partitions wait has room now, or with `wait` from a time on that is sooner than they know. */
  bringBack(
    partitions: readonly (Partition & { readonly resource: number; readonly lane: number })[],
    wait: Wait | null,
  ): void {
    this.forget();
    for (const row of partitions) {
      const { heldUntil, gateAt } = restrictionsOf(this.#session, row.resource)(row.lane);
      this.#restrict(row, { heldUntil: Math.max(heldUntil, wait?.until ?? 0), gateAt }, wait);
    }
  }

  /** A claim has taken jobs from these gated partitions of one resource, and `turn` comes after the turns of all others. */
  servedGated(partitions: readonly Partition[], turn: number): void {
    for (const [index, partition] of partitions.entries()) {
      if (this.#firstDueAt(partition.id) === null) this.#session.sql(REMOVE).run(partition.id);
      else {
        this.#session.sql(SET_TURN).run(turn + index, partition.id);
        this.#moveGated(partition);
      }
    }
  }

  /** Null for `until` takes the hold away. Write transactions only. */
  hold(target: HoldTarget, until: number | null): void {
    const resource = writeHold(this.#session, target, until);
    if (resource !== null) this.restrict(resource);
  }

  /** The hold of a resource, or its gate, was written: its partitions follow. Write transactions only. */
  restrict(resource: number): void {
    const restrictionIn = restrictionsOf(this.#session, resource);
    this.forget();
    const rows = this.#session.sql(OF_RESOURCE).all(resource) as unknown as (Partition & { lane: number })[];
    for (const row of rows) {
      const restriction = restrictionIn(row.lane);
      if (restriction.heldUntil === row.heldUntil && restriction.gateAt === row.gateAt) continue;
      this.#restrict(row, restriction, null);
    }
  }

  #restrict({ id, admissibleAt }: Partition, { heldUntil, gateAt }: Restriction, wait: Wait | null): void {
    const { now } = this.#session;
    const dueAt = this.#firstDueAt(id) ?? NEVER;
    const startsAt = Math.max(heldUntil, dueAt);
    const admissible = startsAt > now ? startsAt : Math.min(admissibleAt, now);
    const gatedAt = gateAt === null ? null : Math.max(gateAt, dueAt);
    this.#session.sql(RESTRICT).run(id, heldUntil, gateAt, admissible, gatedAt, wait?.for ?? null);
  }

  /** The line of jobs that wait without their name. */
  #rootOf(resource: number): number {
    if (resource === 0) return 0;
    const { strings } = this.#session;
    const name = strings.text(resource);
    const root = rootOf(name);
    return root === name ? resource : strings.intern(root);
  }

  /** The queue under which jobs with these limits wait. */
  #limitedQueue(queue: number, limits: string): number {
    const { strings } = this.#session;
    const names = parseLimits(limits).map(({ limit }) => limit);
    return strings.intern(limitedQueue(strings.text(queue), names));
  }

  /** Both stay listed for as long as they have partitions: see forget-limits.ts. */
  #listLimited(queue: number, limited: number, limits: string): void {
    const { strings } = this.#session;
    const { queue: real, aside } = parseQueue(strings.text(queue));
    this.#session.sql(ADD_LIMITED_QUEUE).run(strings.intern(real), limited, aside === null ? 0 : 1);
    const all = parseLimits(limits);
    // A partition with one limit is found by that.
    if (all.length > 1) for (const { limit, key } of all) this.#session.sql(ADD_LIST).run(limit, key, limits);
  }

  #get(sql: string, ...values: (number | string | null)[]): Partition | undefined {
    return this.#session.sql(sql).get(...values) as Partition | undefined;
  }

  #move(id: number, admissibleAt: number, turn: number): void {
    this.#session.sql(MOVE).run(admissibleAt, turn, id);
  }

  #moveGated({ id, gateAt, gatedAt }: Partition): void {
    const startsAt = Math.max(gateAt as number, this.#firstDueAt(id) ?? NEVER);
    if (startsAt !== gatedAt) this.#session.sql(MOVE_GATED).run(startsAt, id);
  }

  /** When the first of its jobs may start; null when none waits. */
  #startOfFirst({ id, heldUntil }: Partition): number | null {
    const dueAt = this.#firstDueAt(id);
    return dueAt === null ? null : Math.max(heldUntil, dueAt);
  }

  #firstDueAt(id: number): number | null {
    return (this.#session.sql(FIRST_DUE).get(id) as { due_at: number } | undefined)?.due_at ?? null;
  }
}
