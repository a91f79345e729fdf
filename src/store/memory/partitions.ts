import type { Lane } from '../../job.ts';
import type { HoldTarget } from '../store.ts';
import { Heap } from './heap.ts';
import type { Row } from './row.ts';

const byDueTime = (a: Row, b: Row): boolean => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.accepted < b.accepted);

/** The waiting jobs that are admitted together: see `Store.claim`. */
export class Partition {
  readonly queue: string;
  readonly resource: string | null;
  /** The number of the turn in which it was last served; 0 for never. */
  servedTurn = 0;
  readonly #waiting: Heap<Row> = new Heap(byDueTime);

  constructor({ queue, resource }: Pick<Row, 'queue' | 'resource'>) {
    this.queue = queue;
    this.resource = resource;
  }

  get isEmpty(): boolean {
    return this.#waiting.first() === undefined;
  }

  add(row: Row): void {
    this.#waiting.add(row);
  }

  remove(row: Row): void {
    this.#waiting.remove(row);
  }

  firstDue(now: number): Row | undefined {
    const first = this.#waiting.first();
    return first !== undefined && first.dueAt <= now ? first : undefined;
  }

  firstDueAt(): number {
    return this.#waiting.first()?.dueAt ?? Number.POSITIVE_INFINITY;
  }
}

/** The partitions of one lane of one queue, by priority and then by what else their jobs share. */
type LanePartitions = Map<number, Map<string, Partition>>;

/** All waiting jobs, so that a claim reads no other: its cost does not grow with what runs or has ended. */
export class Partitions {
  readonly #queues: Map<string, Map<Lane, LanePartitions>> = new Map();
  /** Until when, by target; infinity for good. */
  readonly #holds: Map<string, number> = new Map();
  #turn = 0;

  add(row: Row): void {
    const lanes = getOrMake(this.#queues, row.queue, () => new Map<Lane, LanePartitions>());
    const priorities = getOrMake(lanes, row.lane, () => new Map<number, Map<string, Partition>>());
    const partitions = getOrMake(priorities, row.priority, () => new Map<string, Partition>());
    getOrMake(partitions, sharedBy(row), () => new Partition(row)).add(row);
  }

  remove(row: Row): void {
    const partitions = this.#queues.get(row.queue)?.get(row.lane)?.get(row.priority);
    const partition = partitions?.get(sharedBy(row));
    partition?.remove(row);
    if (partition?.isEmpty) partitions?.delete(sharedBy(row));
  }

  /** What a claim may take from now: by priority, and inside a priority the least recently served partition first. */
  admissible(queue: string, lane: Lane, now: number): Partition[][] {
    const priorities = this.#queues.get(queue)?.get(lane) ?? new Map<number, Map<string, Partition>>();
    return [...priorities.keys()]
      .sort((a, b) => a - b)
      .map((priority) =>
        [...(priorities.get(priority)?.values() ?? [])]
          .filter((partition) => this.#heldUntil(partition) <= now && partition.firstDue(now) !== undefined)
          .sort((a, b) => a.servedTurn - b.servedTurn),
      );
  }

  hasDue(queue: string, lane: Lane, now: number): boolean {
    return this.admissible(queue, lane, now).some((partitions) => partitions.length > 0);
  }

  served(partition: Partition): void {
    partition.servedTurn = ++this.#turn;
  }

  /** When the next job of these queues may start that may not start now. */
  nextDueAt(queues: readonly string[], now: number): number | null {
    let next = Number.POSITIVE_INFINITY;
    for (const queue of queues) {
      for (const lane of this.#queues.get(queue)?.values() ?? []) {
        for (const partitions of lane.values()) {
          for (const partition of partitions.values()) {
            const startsAt = Math.max(this.#heldUntil(partition), partition.firstDueAt());
            if (startsAt > now) next = Math.min(next, startsAt);
          }
        }
      }
    }
    return Number.isFinite(next) ? next : null;
  }

  hold(target: HoldTarget, until: number | null): void {
    this.#holds.set(keyOf(target), until ?? Number.POSITIVE_INFINITY);
  }

  /** False when there was no such hold. */
  release(target: HoldTarget): boolean {
    return this.#holds.delete(keyOf(target));
  }

  isPaused(queue: string): boolean {
    return this.#holds.get(keyOf({ queue })) === Number.POSITIVE_INFINITY;
  }

  pausedQueues(): string[] {
    return [...this.#holds].flatMap(([key, until]) => {
      const target = JSON.parse(key) as HoldTarget;
      return 'queue' in target && until === Number.POSITIVE_INFINITY ? [target.queue] : [];
    });
  }

  #heldUntil({ queue, resource }: Partition): number {
    const ofQueue = this.#holds.get(keyOf({ queue })) ?? 0;
    return resource === null ? ofQueue : Math.max(ofQueue, this.#holds.get(keyOf({ resource })) ?? 0);
  }
}

/** What the jobs of a partition share beside queue, lane and priority. A failing name must not delay the retries of others. */
function sharedBy({ lane, resource, name }: Row): string {
  return JSON.stringify(lane === 'retry' || lane === 'redrive' ? [resource, name] : [resource]);
}

function keyOf(target: HoldTarget): string {
  return JSON.stringify('queue' in target ? { queue: target.queue } : { resource: target.resource });
}

function getOrMake<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
