import { accessFor, accessOf, freeAccess, type GateAccess, type GateState, isFree } from '../../gate/index.ts';
import type { Lane } from '../../job.ts';
import { type LimitKey, limitsText } from '../../limit/limit.ts';
import type { Aside } from '../../retry/decision.ts';
import { mayRead, type Reader } from '../aside.ts';
import type { HoldTarget } from '../store.ts';
import { lineIn, Turns } from '../turns.ts';
import { Heap } from './heap.ts';
import type { Row } from './row.ts';

const byDueTime = (a: Row, b: Row): boolean => a.dueAt < b.dueAt || (a.dueAt === b.dueAt && a.accepted < b.accepted);

/** The waiting jobs that are admitted together: see `Store.claim`. */
export class Partition {
  readonly queue: string;
  readonly lane: Lane;
  readonly resource: string | null;
  readonly limits: readonly LimitKey[];
  /** The name of its jobs, when they wait aside, and which workers may read it. */
  readonly aside: (Aside & { readonly name: string }) | null;
  /** See ../turns.ts. */
  readonly line: string;
  /** The number of the turn in which it was last served, or made. */
  servedTurn: number;
  readonly #waiting: Heap<Row> = new Heap(byDueTime);

  constructor(row: Row, turn: number) {
    const { queue, lane, priority, resource, limits, name, aside } = row;
    this.servedTurn = turn;
    this.queue = queue;
    this.lane = lane;
    this.resource = resource;
    this.limits = limits;
    this.aside = aside && { ...aside, name };
    const names = limits.map(({ limit }) => limit);
    this.line = JSON.stringify([queue, lane, priority, lineIn(lane, row), names, this.aside]);
  }

  get isEmpty(): boolean {
    return this.#waiting.first() === undefined;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** How many are due, as far as `most`. */
  countDue(now: number, most: number): number {
    let due = 0;
    for (const row of this.#waiting.items()) {
      if (due >= most) break;
      if (row.dueAt <= now) due++;
    }
    return due;
  }

  /** In due order. */
  due(now: number): Row[] {
    return this.split(now)[0];
  }

  /** Those that are due, and the others, each in due order. */
  split(now: number): [due: Row[], later: Row[]] {
    const rows = [...this.#waiting.items()].sort((a, b) => (byDueTime(a, b) ? -1 : 1));
    return [rows.filter(({ dueAt }) => dueAt <= now), rows.filter(({ dueAt }) => dueAt > now)];
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

/** A claim whose gate was asked is of one resource. */
export type ClaimKind = 'ordinary' | 'limited' | { readonly resource: string };

/** The partitions of one lane of one queue, by priority and then by what else their jobs share. */
type LanePartitions = Map<number, Map<string, Partition>>;

/** All waiting jobs, so that a claim reads no other: its cost does not grow with what runs or has ended. */
export class Partitions {
  readonly #queues: Map<string, Map<Lane, LanePartitions>> = new Map();
  /** Until when, by target; infinity for good. */
  readonly #holds: Map<string, number> = new Map();
  /** By resource, unless its gate lets everything start. */
  readonly #access: Map<string, GateAccess> = new Map();
  /** Of lines. */
  readonly turns: Turns = new Turns();
  /** Of partitions. */
  #turn = 0;

  add(row: Row): void {
    const lanes = getOrMake(this.#queues, row.queue, () => new Map<Lane, LanePartitions>());
    const priorities = getOrMake(lanes, row.lane, () => new Map<number, Map<string, Partition>>());
    const partitions = getOrMake(priorities, row.priority, () => new Map<string, Partition>());
    getOrMake(partitions, sharedBy(row), () => new Partition(row, this.#turn)).add(row);
  }

  remove(row: Row): void {
    const partitions = this.#queues.get(row.queue)?.get(row.lane)?.get(row.priority);
    const partition = partitions?.get(sharedBy(row));
    partition?.remove(row);
    if (partition?.isEmpty) partitions?.delete(sharedBy(row));
  }

  /**
   * What a claim of this worker may take from now: by priority, and inside a priority the least recently
   * served partition first. Gated partitions are admissible to a claim of their resource only.
   */
  admissible(queue: string, lane: Lane, now: number, reader: Reader, kind: ClaimKind): Partition[][] {
    const priorities = this.#queues.get(queue)?.get(lane) ?? new Map<number, Map<string, Partition>>();
    return [...priorities.keys()]
      .sort((a, b) => a - b)
      .map((priority) =>
        [...(priorities.get(priority)?.values() ?? [])]
          .filter(
            (partition) =>
              partition.firstDue(now) !== undefined &&
              isReadBy(partition, reader) &&
              this.#admits(partition, kind, now),
          )
          .sort((a, b) => a.servedTurn - b.servedTurn),
      );
  }

  hasDue(queue: string, lane: Lane, now: number, reader: Reader): boolean {
    return this.admissible(queue, lane, now, reader, 'ordinary').some((partitions) => partitions.length > 0);
  }

  served(partition: Partition): void {
    partition.servedTurn = ++this.#turn;
    this.turns.served(partition.line);
  }

  /** When the next job of these queues may start that may not start now. */
  nextDueAt(queues: readonly string[], now: number, reader: Reader): number | null {
    let next = Number.POSITIVE_INFINITY;
    for (const partition of this.#in(queues)) {
      if (isLimited(partition) && !this.#accessTo(partition).gated) continue;
      const startsAt = isReadBy(partition, reader) ? this.#startsAt(partition) : now;
      if (startsAt > now) next = Math.min(next, startsAt);
    }
    return Number.isFinite(next) ? next : null;
  }

  /** Whether jobs wait that `claimLimited` would take. */
  hasLimited(queues: readonly string[], reader: Reader): boolean {
    return this.limited(queues, reader).length > 0;
  }

  /** The partitions that `claimLimited` takes from, and when the first job of each may start, but for its limits. */
  limited(queues: readonly string[], reader: Reader): { readonly partition: Partition; readonly startsAt: number }[] {
    return this.#in(queues)
      .filter((partition) => isLimited(partition) && isReadBy(partition, reader) && !this.#accessTo(partition).gated)
      .map((partition) => ({ partition, startsAt: this.#startsAt(partition) }));
  }

  /** Resources of gated partitions in these queues from which a job may start now, those that have waited longest first. */
  gated(queues: readonly string[], now: number, reader: Reader): string[] {
    const waiting = this.#in(queues)
      .filter((partition) => isReadBy(partition, reader))
      .filter((partition) => this.#accessTo(partition).gated && this.#startsAt(partition) <= now)
      .sort((a, b) => this.#startsAt(a) - this.#startsAt(b));
    return [...new Set(waiting.map(({ resource }) => resource as string))];
  }

  all(): Partition[] {
    return this.#in(this.#queues.keys());
  }

  /** Those whose jobs wait aside. */
  aside(): Partition[] {
    return this.all().filter(({ aside }) => aside !== null);
  }

  waitingFor(resource: string): number {
    return this.all()
      .filter((partition) => partition.resource === resource)
      .reduce((jobs, { size }) => jobs + size, 0);
  }

  firstDueFor(resource: string): number {
    const waiting = this.all().filter((partition) => partition.resource === resource);
    return Math.min(...waiting.map((partition) => partition.firstDueAt()));
  }

  /** The gate of a resource is in this state now. */
  gate(resource: string, state: GateState, now: number): void {
    const access = accessOf(state, now);
    if (isFree(access)) this.#access.delete(resource);
    else this.#access.set(resource, access);
  }

  ungate(resource: string): void {
    this.#access.delete(resource);
  }

  #in(queues: Iterable<string>): Partition[] {
    return [...queues]
      .flatMap((queue) => [...(this.#queues.get(queue)?.values() ?? [])])
      .flatMap((lane) => [...lane.values()].flatMap((partitions) => [...partitions.values()]));
  }

  #accessTo({ resource, lane }: Partition): GateAccess['fresh'] {
    return ((resource === null ? undefined : this.#access.get(resource)) ?? freeAccess)[accessFor(lane)];
  }

  #admits(partition: Partition, kind: ClaimKind, now: number): boolean {
    if (this.#heldUntil(partition) > now) return false;
    if (typeof kind === 'object') return partition.resource === kind.resource && this.#accessTo(partition).gated;
    const { gated, at } = this.#accessTo(partition);
    if (isLimited(partition) !== (kind === 'limited')) return false;
    return !gated && at !== null && at <= now;
  }

  /** When its first job may start. */
  #startsAt(partition: Partition): number {
    const at = this.#accessTo(partition).at ?? Number.POSITIVE_INFINITY;
    return Math.max(this.#heldUntil(partition), partition.firstDueAt(), at);
  }

  hold(target: HoldTarget, until: number | null): void {
    this.#holds.set(keyOf(target), until ?? Number.POSITIVE_INFINITY);
  }

  release(target: HoldTarget): void {
    this.#holds.delete(keyOf(target));
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
function sharedBy({ lane, resource, limits, name, aside }: Row): string {
  const behind = [resource, lane === 'suspect' ? '' : limitsText(limits)];
  if (aside !== null) return JSON.stringify([...behind, name, aside]);
  return JSON.stringify(lane === 'retry' || lane === 'redrive' ? [...behind, name] : behind);
}

/** The trial of a suspect asks no limit. */
function isLimited({ limits, lane }: Partition): boolean {
  return limits.length > 0 && lane !== 'suspect';
}

function isReadBy({ aside }: Partition, reader: Reader): boolean {
  return aside === null || mayRead(reader, aside.name, aside);
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
