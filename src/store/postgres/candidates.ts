import type { Lane } from '../../job.ts';
import { plain } from './connection/arrays.ts';
import { type Partition, type PartitionRow, toPartition } from './partitions.ts';
import { MOST_CANDIDATES } from './sql/partitions.ts';

/** A partition that a claim may read. */
export interface Candidate {
  readonly partition: Partition;
  /** The turn in which this process last took a job from it; 0 for never. */
  servedTurn: number;
}

/** Those of one queue. */
interface QueueCandidates {
  readonly list: Candidate[];
  /** The list is in the order in which they are to be served. */
  isSorted: boolean;
}

/** What the database offers: see the function `candidates`. */
type Offer = [isComplete: boolean, partitions: PartitionRow[] | null];

/** The lanes in the order in which `fillQuotas` serves them. */
const laneOrder: Readonly<Record<Lane, number>> = { suspect: 0, retry: 1, redrive: 2, fresh: 3 };

/** Of many partitions so many are offered that a claim finds this many due jobs per place, but at least some. */
const DUE_PER_PLACE = 1.5;
const FEWEST_CANDIDATES = 4;

/** A process that claims from more sets of queues than this is offered their partitions again. */
const MOST_SETS = 100;

/**
 * The partitions that claims should read: those that the database offered with the answer to the last claim of the same
 * queues, and those that this process made since. Usually that is all there are, and this process lets them take turns.
 * When there are too many with a resource, the database offers the least recently served ones of those.
 */
export class Candidates {
  readonly #byQueue: Map<string, QueueCandidates> = new Map();
  /** By set of queues: the numbers of all their partitions; null when there are more than were offered. */
  readonly #known: Map<string, string | null> = new Map();
  /** By set of queues: see `breadth`. */
  readonly #breadths: Map<string, number> = new Map();
  #turn = 0;

  /** In the order in which they are to be served. */
  of(queues: readonly string[]): Candidate[] {
    return queues.flatMap((queue) => {
      const candidates = this.#byQueue.get(queue);
      if (candidates === undefined) return [];
      if (!candidates.isSorted) candidates.list.sort(inTurn);
      candidates.isSorted = true;
      return candidates.list;
    });
  }

  /** The numbers of all partitions of these queues; null when there are more, undefined when none were offered. */
  known(queues: readonly string[]): string | null | undefined {
    return this.#known.get(JSON.stringify(queues));
  }

  /** Of each queue, lane and priority, so many partitions with a resource are to be offered when there are many. */
  breadth(queues: readonly string[]): number {
    return this.#breadths.get(JSON.stringify(queues)) ?? FEWEST_CANDIDATES;
  }

  /**
   * A claim found so many due jobs in what it was offered. Few partitions are cheaper to read and to rotate than many, but
   * they should fill its places.
   */
  tune(queues: readonly string[], due: number, places: number): void {
    const key = JSON.stringify(queues);
    if (places === 0 || this.#known.get(key) !== null) return;
    const wanted = Math.ceil(this.breadth(queues) * Math.min(2, (DUE_PER_PLACE * places) / due));
    if (this.#breadths.size >= MOST_SETS) this.#breadths.clear();
    this.#breadths.set(key, Math.max(FEWEST_CANDIDATES, Math.min(MOST_CANDIDATES, wanted)));
  }

  /** A partition that this process has made, or may have. */
  add(partition: Partition): void {
    const { id, queue, lane, priority } = partition;
    const candidates = this.#byQueue.get(queue);
    if (candidates === undefined || candidates.list.some((one) => one.partition.id === id)) return;
    if (partition.resource !== null) {
      const tier = candidates.list.filter((one) => one.partition.lane === lane && one.partition.priority === priority);
      if (tier.length >= MOST_CANDIDATES) return;
    }
    candidates.list.push({ partition, servedTurn: 0 });
    candidates.isSorted = false;
  }

  /** Partitions were made, or became admissible, that this process does not know. */
  forget(): void {
    this.#byQueue.clear();
    this.#known.clear();
  }

  served(candidate: Candidate): void {
    candidate.servedTurn = ++this.#turn;
    const candidates = this.#byQueue.get(candidate.partition.queue);
    if (candidates !== undefined) candidates.isSorted = false;
  }

  offer(queues: readonly string[], text: string): void {
    const [isComplete, partitions] = JSON.parse(text) as Offer;
    const before = new Map(this.of(queues).map((candidate) => [candidate.partition.id, candidate]));
    for (const queue of queues) this.#byQueue.set(queue, { list: [], isSorted: false });
    // What the database has chosen because it was not served for long comes after what was served less recently here.
    const servedTurn = isComplete ? 0 : this.#turn;
    for (const row of partitions ?? []) {
      const partition = toPartition(row);
      const candidate = isComplete || partition.resource === null ? before.get(partition.id) : undefined;
      this.#byQueue.get(partition.queue)?.list.push(candidate ?? { partition, servedTurn });
    }
    if (this.#known.size >= MOST_SETS) this.#known.clear();
    const ids = (partitions ?? []).map(([id]) => id).sort((a, b) => a - b);
    this.#known.set(JSON.stringify(queues), isComplete ? plain(ids) : null);
  }
}

function inTurn(a: Candidate, b: Candidate): number {
  return (
    laneOrder[a.partition.lane] - laneOrder[b.partition.lane] ||
    a.partition.priority - b.partition.priority ||
    a.servedTurn - b.servedTurn
  );
}
