import { StoreBusyError } from '../../errors.ts';
import { type Lane, lanes } from '../../job.ts';
import { type LimitKey, limitsText } from '../../limit/limit.ts';
import type { Aside } from '../../retry/decision.ts';
import { asideQueue, MARK } from '../aside.ts';
import { LANE } from '../codes.ts';
import { limitedQueue } from '../limited-queue.ts';
import { lineIn } from '../turns.ts';
import { parseUnder } from './asides.ts';
import { plain, texts } from './connection/arrays.ts';
import type { Database } from './connection/database.ts';

/** What the jobs of a partition share: see `Store.claim`. */
export interface PartitionIdentity {
  readonly queue: string;
  readonly lane: Lane;
  readonly priority: number;
  readonly resource: string | null;
  /** Null in the lanes where names do not wait apart. */
  readonly name: string | null;
  /** Those that its jobs stand behind; none in the lane of suspects. */
  readonly limits: readonly LimitKey[];
  /** The queue that the partition is under when its jobs wait aside or behind limits: see ../aside.ts, ../limited-queue.ts. */
  readonly under: string | null;
}

export interface Partition extends PartitionIdentity {
  readonly id: number;
}

/** A row of the table: id, queue, lane, priority, resource, name. */
export type PartitionRow = [id: number, queue: string, lane: number, priority: number, resource: string, name: string];

export function toPartition([id, text, lane, priority, resource, column]: PartitionRow): Partition {
  const { queue, aside, limits } = parseUnder(text);
  const [name, keys] = column.split(MARK) as [string, string | undefined];
  const keyOf = keys === undefined ? [] : (JSON.parse(keys) as string[]);
  return {
    id,
    queue,
    lane: lanes[lane] as Lane,
    priority,
    resource: resource || null,
    name: name || null,
    limits: limits.map((limit, index) => ({ limit, key: keyOf[index] as string })),
    under: aside === null && limits.length === 0 ? null : text,
  };
}

/** The line of a partition, among all that a process claims from: see ../turns.ts. */
export function lineOf({ queue, under, lane, priority, name, resource }: PartitionIdentity): string {
  return [under ?? queue, lane, priority, lineIn(lane, { name: name ?? '', resource })].join(' ');
}

/** Where a job of this name waits in a lane. In the retry and redrive lanes a failing name must not delay the others. */
export function partitionIn(
  lane: Lane,
  job: Pick<PartitionIdentity, 'queue' | 'priority' | 'resource'> & {
    readonly name: string;
    readonly limits?: readonly LimitKey[];
  },
  aside: Aside | null = null,
): PartitionIdentity {
  const { queue, priority, resource, name } = job;
  // The trial of a suspect asks no limit.
  const limits = lane === 'suspect' ? none : (job.limits ?? none);
  const within = aside === null ? queue : asideQueue(queue, name, aside);
  return {
    queue,
    lane,
    priority,
    resource,
    name: lane === 'retry' || lane === 'redrive' ? name : null,
    limits,
    under: limits.length > 0 ? limitedQueue(within, namesOf(limits)) : within === queue ? null : within,
  };
}

const none: readonly LimitKey[] = [];

function namesOf(limits: readonly LimitKey[]): string[] {
  return limits.map(({ limit }) => limit);
}

/** The name of a partition, as it is stored: with the keys of its limits. */
function nameColumn({ name, limits }: PartitionIdentity): string {
  const keys = limits.map(({ key }) => key);
  return limits.length === 0 ? (name ?? '') : `${name ?? ''}${MARK}${JSON.stringify(keys)}`;
}

/**
 * Those that pruning deletes when they are empty, with a resource, aside or behind limits, as an array literal: they are to be admitted
 * when jobs are put into them (sql/partitions.ts).
 */
export function keyedOf(partitions: Iterable<Partition | null>): string {
  const keyed = new Set<number>();
  for (const partition of partitions) {
    if (partition !== null && (partition.resource !== null || partition.under !== null)) keyed.add(partition.id);
  }
  return plain([...keyed]);
}

/** A process that uses more partitions than this looks their numbers up again. */
const MOST_CACHED = 10_000;
/** A second one is rare: pruning would have to delete the partition again in the moment before it is used. */
const MOST_TRIES = 10;

/** The numbers of partitions. Those with a resource are deleted when they are empty, and later have another number. */
export class Partitions {
  readonly #db: Database;
  /** Called for each partition that may be new. */
  readonly #onAdd: (partition: Partition) => void;
  #byIdentity: Map<string, Partition> = new Map();

  constructor(db: Database, onAdd: (partition: Partition) => void) {
    this.#db = db;
    this.#onAdd = onAdd;
  }

  /** These partitions, adding those that are new. */
  async intern(wanted: readonly PartitionIdentity[]): Promise<Partition[]> {
    const keys = keysOf(wanted);
    const known = keys.map((key) => this.#byIdentity.get(key));
    if (!known.includes(undefined)) return known as Partition[];
    const missing = new Map<string, PartitionIdentity>();
    for (const [index, key] of keys.entries()) {
      if (known[index] === undefined) missing.set(key, wanted[index] as PartitionIdentity);
    }
    const added = await this.#add(missing);
    const found = keys.map((key, index) => (known[index] ?? added.get(key)) as Partition);
    if (this.#byIdentity.size + added.size > MOST_CACHED) this.#byIdentity = new Map();
    for (const [key, partition] of added) {
      this.#byIdentity.set(key, partition);
      this.#onAdd(partition);
    }
    return found;
  }

  /**
   * Makes a call that takes the numbers of these partitions. The call answers null, and has written nothing, when one of
   * them was deleted meanwhile: then it is made again with numbers that were looked up again.
   */
  async use<Answer>(
    wanted: readonly PartitionIdentity[],
    call: (partitions: Partition[], tries: number) => Promise<Answer | null>,
  ): Promise<Answer> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const answer = await call(await this.intern(wanted), tries);
      if (answer !== null) return answer;
      for (const key of keysOf(wanted)) this.#byIdentity.delete(key);
    }
    throw new StoreBusyError(
      `expected to put jobs into partitions that exist, but pruning deleted them ${MOST_TRIES} times; nothing was written. Try again.`,
    );
  }

  /** For a caller's transaction: takes these partitions out of their parking. False when one of them is gone. */
  async admit(partitions: Iterable<Partition>): Promise<boolean> {
    const [row] = await this.#db.query<[boolean]>('SELECT @.admit_for_caller($1::bigint[])', [keyedOf(partitions)]);
    return (row as [boolean])[0];
  }

  /** The partitions behind these numbers, without those that are deleted: no job is in them any more. */
  async load(ids: Iterable<number>): Promise<(id: number) => Partition | undefined> {
    const rows = await this.#db.query<PartitionRow>(
      'SELECT id, queue, lane, priority, resource, name FROM @.partitions WHERE id = ANY ($1::bigint[])',
      [plain([...new Set(ids)])],
    );
    const found = new Map(rows.map((row) => [row[0], toPartition(row)]));
    return (id) => found.get(id);
  }

  async #add(missing: ReadonlyMap<string, PartitionIdentity>): Promise<Map<string, Partition>> {
    const added = await this.#addOnce([...missing]);
    // One that was being deleted is not answered.
    while (added.size < missing.size) {
      const rest = await this.#addOnce([...missing].filter(([key]) => !added.has(key)));
      for (const [key, partition] of rest) added.set(key, partition);
    }
    return added;
  }

  async #addOnce(wanted: readonly [string, PartitionIdentity][]): Promise<Map<string, Partition>> {
    const rows = await this.#db.query<[ord: number, id: number]>(
      'SELECT * FROM @.partitions_of($1::text[], $2::smallint[], $3::smallint[], $4::text[], $5::text[])',
      [
        texts(wanted.map(([, { queue, under }]) => under ?? queue)),
        plain(wanted.map(([, { lane }]) => LANE[lane])),
        plain(wanted.map(([, { priority }]) => priority)),
        texts(wanted.map(([, { resource }]) => resource ?? '')),
        texts(wanted.map(([, identity]) => nameColumn(identity))),
      ],
    );
    return new Map(
      rows.map(([ord, id]) => {
        const [key, identity] = wanted[ord - 1] as [string, PartitionIdentity];
        return [key, { ...identity, id }];
      }),
    );
  }
}

/** Usually each is the same as the one before, and no second text is made of it. */
function keysOf(wanted: readonly PartitionIdentity[]): string[] {
  const keys: string[] = [];
  let last: PartitionIdentity | null = null;
  for (const identity of wanted) {
    keys.push(last !== null && isSame(identity, last) ? (keys.at(-1) as string) : keyOf(identity));
    last = identity;
  }
  return keys;
}

function keyOf(identity: PartitionIdentity): string {
  const { queue, lane, priority, resource, under } = identity;
  return JSON.stringify([under ?? queue, lane, priority, resource, nameColumn(identity)]);
}

function isSame(a: PartitionIdentity, b: PartitionIdentity): boolean {
  if (a === b) return true;
  return (
    a.queue === b.queue &&
    a.lane === b.lane &&
    a.priority === b.priority &&
    a.resource === b.resource &&
    a.name === b.name &&
    a.under === b.under &&
    limitsText(a.limits) === limitsText(b.limits)
  );
}
