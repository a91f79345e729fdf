import type { Lane } from '../../job.ts';
import { type Partition, type PartitionRow, toPartition } from './partitions.ts';
import { MOST_CANDIDATES } from './sql/partitions.ts';

/** A partition that a claim may read. */
export interface Candidate {
  readonly partition: Partition;
  /** Its queue, lane and priority have more partitions than were offered: the database keeps their turns. */
  readonly rotates: boolean;
  /** The turn in which this process last took a job from it; 0 for never. */
  servedTurn: number;
}

/** The lanes in the order in which `fillQuotas` serves them. */
const laneOrder: Readonly<Record<Lane, number>> = { suspect: 0, retry: 1, redrive: 2, fresh: 3 };

/**
 * The partitions that claims should read: those that were offered with the answer to the last claim of the same queues,
 * and those that this process made since. Of one queue, lane and priority that is all there are, usually, and this process
 * lets them take turns. When there are more than MOST_CANDIDATES, the database offers the least recently served ones.
 */
export class Candidates {
  readonly #byQueue: Map<string, Candidate[]> = new Map();
  #lastOffer = '';
  #turn = 0;

  /** In the order in which they are to be served. */
  of(queues: readonly string[]): Candidate[] {
    return queues.flatMap((queue) =>
      (this.#byQueue.get(queue) ?? []).sort(
        (a, b) =>
          laneOrder[a.partition.lane] - laneOrder[b.partition.lane] ||
          a.partition.priority - b.partition.priority ||
          turnOf(a) - turnOf(b),
      ),
    );
  }

  /** Whether partitions of all these queues have been offered. */
  knows(queues: readonly string[]): boolean {
    return queues.every((queue) => this.#byQueue.has(queue));
  }

  /** A partition that is new, or may be. */
  add(partition: Partition): void {
    const { id, queue, lane, priority } = partition;
    const candidates = this.#byQueue.get(queue);
    if (candidates === undefined || candidates.some((candidate) => candidate.partition.id === id)) return;
    const group = candidates.filter((one) => one.partition.lane === lane && one.partition.priority === priority);
    if (group.length >= MOST_CANDIDATES) return;
    candidates.push({ partition, rotates: false, servedTurn: 0 });
    this.#lastOffer = '';
  }

  /** Partitions were made, or became admissible, that this process does not know. */
  forget(): void {
    this.#byQueue.clear();
    this.#lastOffer = '';
  }

  served(candidate: Candidate): void {
    candidate.servedTurn = ++this.#turn;
  }

  /** Takes over what the database offered for these queues: partitions as JSON, null for none. */
  offer(queues: readonly string[], offer: string | null): void {
    const offered = `${JSON.stringify(queues)}${offer}`;
    if (offered === this.#lastOffer) return;
    this.#lastOffer = offered;
    const known = new Map(queues.flatMap((queue) => this.#byQueue.get(queue) ?? []).map((c) => [c.partition.id, c]));
    for (const queue of queues) this.#byQueue.set(queue, []);
    const rows = offer === null ? [] : (JSON.parse(offer) as PartitionRow[]);
    const sizes = new Map<string, number>();
    for (const row of rows) sizes.set(groupOf(row), (sizes.get(groupOf(row)) ?? 0) + 1);
    for (const row of rows) {
      const rotates = (sizes.get(groupOf(row)) as number) >= MOST_CANDIDATES;
      const before = known.get(row[0]);
      const candidate =
        before?.rotates === rotates
          ? before
          : { partition: before?.partition ?? toPartition(row), rotates, servedTurn: before?.servedTurn ?? 0 };
      this.#byQueue.get(row[1])?.push(candidate);
    }
  }
}

function turnOf({ rotates, servedTurn }: Candidate): number {
  return rotates ? 0 : servedTurn;
}

function groupOf([, queue, lane, priority]: PartitionRow): string {
  return `${lane} ${priority} ${queue}`;
}
