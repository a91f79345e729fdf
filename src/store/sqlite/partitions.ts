import type { StatementSync } from 'node:sqlite';
import { type Lane, lanes } from '../../job.ts';
import { LANE } from '../codes.ts';
import type { HoldTarget } from '../store.ts';
import type { InternedStrings } from './interned.ts';

/*
 * A partition is a row for as long as a job waits in it. Its `admissible_at` is the one time that a claim compares with
 * its own: from then on the partition's first job may start, because it is due and no hold is in the way.
 *
 *   a job enters      the row is made, or admissible_at falls to when that job may start
 *   a claim serves it the row goes when no job is left; else admissible_at rises to when the next job may start, and when
 *                     that is now, the partition goes behind the last admissible one of its tier
 *   a job leaves      the same, but the partition keeps its turn
 *   hold, release     of a resource: held_until and admissible_at of its partitions change. A held queue is left as it
 *                     is, however many partitions it has: `tiers` tells that none of it is admissible
 *
 * SQLite has one writer, so each of these is exact when its transaction ends. A tier is the partitions of one queue, lane
 * and priority. In the order of (admissible_at, turn), those of its partitions that are admissible come first, and of
 * those the least recently served.
 */

/** Later than any time: held for good. */
export const NEVER: number = Number.MAX_SAFE_INTEGER;

/** What the jobs of a partition have in common. All but the lane and the priority are numbers of interned strings. */
export interface PartitionKey {
  readonly queue: number;
  readonly lane: number;
  readonly priority: number;
  /** 0 for none. */
  readonly resource: number;
  /** Of the jobs: it parts them in the lanes `retry` and `redrive`, so that one failing name does not delay the others. */
  readonly name: number;
}

export interface Tier {
  readonly queue: number;
  readonly lane: Lane;
  readonly priority: number;
  /** When its first partition becomes admissible. */
  readonly admissibleAt: number;
}

export interface Partition {
  readonly id: number;
  readonly heldUntil: number;
  readonly admissibleAt: number;
}

const COLUMNS = 'id, held_until AS heldUntil, admissible_at AS admissibleAt';
const IN_TIER = 'queue = ? AND lane = ? AND priority = ?';
const FIND = `SELECT ${COLUMNS} FROM partitions WHERE ${IN_TIER} AND resource = ? AND name = ?`;
const ADD = `
  INSERT INTO partitions (queue, lane, priority, resource, name, held_until, admissible_at, turn)
  VALUES (?, ?, ?, ?, ?, ?, ?, 0) RETURNING ${COLUMNS}`;
const MOVE = 'UPDATE partitions SET admissible_at = ?, turn = ? WHERE id = ?';
const REMOVE = 'DELETE FROM partitions WHERE id = ?';
const BY_ID = `SELECT ${COLUMNS} FROM partitions WHERE id = ?`;
const FIRST_DUE = 'SELECT due_at FROM jobs WHERE partition = ? ORDER BY due_at LIMIT 1';

/* Behind all partitions of the tier: with (lane, priority) alone, SQLite would walk over them. */
const NEXT_TIER = `
  SELECT lane, priority, admissible_at AS admissibleAt FROM partitions
  WHERE queue = ? AND (lane, priority, admissible_at) > (?, ?, ${NEVER} + 1)
  ORDER BY lane, priority, admissible_at LIMIT 1`;
const NEXT_IN_TIER = `
  SELECT admissible_at AS at FROM partitions WHERE ${IN_TIER} AND admissible_at > ? ORDER BY admissible_at LIMIT 1`;
const ADMISSIBLE = `
  SELECT ${COLUMNS} FROM partitions WHERE ${IN_TIER} AND admissible_at <= ? ORDER BY admissible_at, turn LIMIT +?`;
const LAST_ADMISSIBLE = `
  SELECT id, admissible_at AS admissibleAt, turn FROM partitions WHERE ${IN_TIER} AND admissible_at <= ?
  ORDER BY admissible_at DESC, turn DESC LIMIT 1`;

const HELD_UNTIL = 'SELECT until FROM holds WHERE scope = ? AND name = ?';
const OF_RESOURCE = `SELECT ${COLUMNS} FROM partitions WHERE resource = ?`;
const SET_HELD = 'UPDATE partitions SET held_until = ?, admissible_at = ?, turn = 0 WHERE id = ?';
const HOLD = 'INSERT OR REPLACE INTO holds (scope, name, until) VALUES (?, ?, ?)';
const RELEASE = 'DELETE FROM holds WHERE scope = ? AND name = ?';

const partsByName: readonly number[] = [LANE.retry, LANE.redrive];

/** What partitions need of the session that owns them. */
interface PartitionSession {
  /** Store time of the transaction under way. */
  readonly now: number;
  readonly strings: InternedStrings;
  sql(text: string): StatementSync;
}

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
    const { queue, lane, priority, resource } = key;
    const name = partsByName.includes(lane) ? key.name : 0;
    const text = `${queue} ${lane} ${priority} ${resource} ${name}`;
    const found = this.#found.get(text) ?? this.#get(FIND, queue, lane, priority, resource, name);
    const heldUntil = found?.heldUntil ?? this.#heldUntil('resource', resource);
    const admissibleAt = Math.max(heldUntil, dueAt, this.#session.now);
    let partition = found;
    if (!found) partition = this.#get(ADD, queue, lane, priority, resource, name, heldUntil, admissibleAt);
    else if (admissibleAt < found.admissibleAt) {
      this.#move(found.id, admissibleAt, 0);
      partition = { ...found, admissibleAt };
    }
    this.#found.set(text, partition as Partition);
    return (partition as Partition).id;
  }

  /** A job has left the partition in another way than by a claim. Write transactions only. */
  leave(id: number): void {
    const partition = this.#get(BY_ID, id);
    if (!partition) return;
    const startsAt = this.#startOfFirst(partition);
    this.forget();
    if (startsAt === null) this.#session.sql(REMOVE).run(id);
    else if (startsAt > this.#session.now && startsAt !== partition.admissibleAt) this.#move(id, startsAt, 0);
  }

  /** The tiers of a queue in which jobs wait, by lane and priority. */
  tiers(queue: number): Tier[] {
    const tiers: Tier[] = [];
    const heldUntil = this.#heldUntil('queue', queue);
    let [lane, priority] = [-1, 0];
    for (;;) {
      const row = this.#session.sql(NEXT_TIER).get(queue, lane, priority);
      if (!row) return tiers;
      const next = row as { lane: number; priority: number; admissibleAt: number };
      [lane, priority] = [next.lane, next.priority];
      const admissibleAt = Math.max(heldUntil, next.admissibleAt);
      tiers.push({ queue, lane: lanes[lane] as Lane, priority, admissibleAt });
    }
  }

  /** When a further partition of the tier becomes admissible; NEVER when none does by itself. */
  nextAdmissibleAt({ queue, lane, priority, admissibleAt }: Tier): number {
    const { now } = this.#session;
    if (admissibleAt > now) return admissibleAt;
    const next = this.#session.sql(NEXT_IN_TIER).get(queue, LANE[lane], priority, now);
    return (next as { at: number } | undefined)?.at ?? NEVER;
  }

  /** The least recently served first. */
  admissible({ queue, lane, priority }: Tier, limit: number): Partition[] {
    const rows = this.#session.sql(ADMISSIBLE).all(queue, LANE[lane], priority, this.#session.now, limit);
    return rows as unknown as Partition[];
  }

  /** A claim has taken jobs from these partitions of a tier, in this order. */
  served({ queue, lane, priority }: Tier, partitions: readonly Partition[]): void {
    const { now } = this.#session;
    let last: { readonly id: number; readonly admissibleAt: number; readonly turn: number } | undefined;
    for (const partition of partitions) {
      const { id } = partition;
      const startsAt = this.#startOfFirst(partition);
      if (startsAt === null) this.#session.sql(REMOVE).run(id);
      else if (startsAt > now) this.#move(id, startsAt, 0);
      else {
        last ??= this.#session.sql(LAST_ADMISSIBLE).get(queue, LANE[lane], priority, now) as NonNullable<typeof last>;
        if (last.id === id) continue;
        last = { ...last, id, turn: last.turn + 1 };
        this.#move(id, last.admissibleAt, last.turn);
      }
    }
  }

  /** Null for `until` takes the hold away. Write transactions only. */
  hold(target: HoldTarget, until: number | null): void {
    const scope = 'queue' in target ? 'queue' : 'resource';
    const name = this.#session.strings.intern('queue' in target ? target.queue : target.resource);
    if (until === null) this.#session.sql(RELEASE).run(scope, name);
    else this.#session.sql(HOLD).run(scope, name, until);
    if (scope === 'queue') return;
    const { now } = this.#session;
    const heldUntil = until ?? 0;
    for (const row of this.#session.sql(OF_RESOURCE).all(name) as unknown as Partition[]) {
      const startsAt = this.#startOfFirst({ ...row, heldUntil }) ?? NEVER;
      const admissibleAt = startsAt > now ? startsAt : Math.min(row.admissibleAt, now);
      this.#session.sql(SET_HELD).run(heldUntil, admissibleAt, row.id);
    }
  }

  #get(sql: string, ...values: number[]): Partition | undefined {
    return this.#session.sql(sql).get(...values) as Partition | undefined;
  }

  #move(id: number, admissibleAt: number, turn: number): void {
    this.#session.sql(MOVE).run(admissibleAt, turn, id);
  }

  #heldUntil(scope: 'queue' | 'resource', name: number): number {
    return (this.#session.sql(HELD_UNTIL).get(scope, name) as { until: number } | undefined)?.until ?? 0;
  }

  /** When the first of its jobs may start; null when none waits. */
  #startOfFirst({ id, heldUntil }: Partition): number | null {
    const first = this.#session.sql(FIRST_DUE).get(id) as { due_at: number } | undefined;
    return first ? Math.max(heldUntil, first.due_at) : null;
  }
}
