import type { Lane } from '../../job.ts';
import { plain } from './connection/arrays.ts';
import { type Partition, type PartitionRow, toPartition } from './partitions.ts';
import { MOST_CANDIDATES } from './sql/partitions.ts';

/** A partition that a claim may read. */
export interface Candidate {
  readonly partition: Partition;
  /** The turn in which this process last took a job from it, or found it. */
  servedTurn: number;
}

/** What the database offers: see the function `candidates`. */
type Offer = [isComplete: boolean, partitions: PartitionRow[] | null];

/** The lanes in the order in which `fillQuotas` serves them. */
const laneOrder: Readonly<Record<Lane, number>> = { suspect: 0, retry: 1, redrive: 2, fresh: 3 };

/** Of many partitions so many are offered that a claim finds this many due jobs per place of their line, but at least some. */
const DUE_PER_PLACE = 1.1;
const FEWEST_CANDIDATES = 4;

/** A process that claims from more sets of queues than this is offered their partitions again. */
const MOST_SETS = 100;

/** The candidates of each set of queues that this process claims from. */
export class Candidates {
  readonly #sets: Map<string, CandidatesOfSet> = new Map();

  of(queues: readonly string[]): CandidatesOfSet {
    const key = JSON.stringify([...queues].sort());
    let set = this.#sets.get(key);
    if (set === undefined) {
      if (this.#sets.size >= MOST_SETS) this.#sets.clear();
      set = new CandidatesOfSet(new Set(queues));
      this.#sets.set(key, set);
    }
    return set;
  }

  /** Partitions became admissible. */
  forget(): void {
    this.#sets.clear();
  }

  /** A partition that this process has made, or may have. */
  add(partition: Partition): void {
    for (const set of this.#sets.values()) set.add(partition);
  }
}

/**
 * The partitions that claims from a set of queues should read: those that the database offered with the answer to the last
 * such claim, and those that this process made since. Usually that is all there are, and this process lets them take turns.
 * When there are too many with a resource, the database offers the least recently served ones of those.
 */
export class CandidatesOfSet {
  readonly #queues: ReadonlySet<string>;
  #list: Candidate[] = [];
  /** The list is in the order in which they are to be served. */
  #isSorted = true;
  #turn = 0;
  /** The numbers of all partitions of these queues; null when there are more, undefined when none were offered yet. */
  known: string | null | undefined;
  /** Of each queue, lane, priority and line, so many partitions with a resource are to be offered when there are many. */
  breadth: number = FEWEST_CANDIDATES;

  constructor(queues: ReadonlySet<string>) {
    this.#queues = queues;
  }

  /** In the order in which they are to be served. */
  get list(): readonly Candidate[] {
    if (!this.#isSorted) this.#list.sort(inTurn);
    this.#isSorted = true;
    return this.#list;
  }

  add(partition: Partition): void {
    const { id, queue, under, lane, priority } = partition;
    if (this.known === undefined || !this.#queues.has(under ?? queue)) return;
    if (this.#list.some((one) => one.partition.id === id)) return;
    if (partition.resource !== null) {
      const tier = this.#list.filter((one) => one.partition.lane === lane && one.partition.priority === priority);
      if (tier.length >= MOST_CANDIDATES) return;
    }
    this.#list.push({ partition, servedTurn: this.#turn });
    this.#isSorted = false;
  }

  served(candidate: Candidate): void {
    candidate.servedTurn = ++this.#turn;
    this.#isSorted = false;
  }

  offer(text: string): void {
    const [isComplete, partitions] = JSON.parse(text) as Offer;
    const before = new Map(this.#list.map((candidate) => [candidate.partition.id, candidate]));
    // What the database has chosen because it was not served for long, or what is new, comes after what was served less recently here.
    const servedTurn = this.#turn;
    this.#list = (partitions ?? []).map((row) => {
      const partition = toPartition(row);
      const candidate = isComplete || partition.resource === null ? before.get(partition.id) : undefined;
      return candidate ?? { partition, servedTurn };
    });
    this.#isSorted = false;
    const ids = (partitions ?? []).map(([id]) => id).sort((a, b) => a - b);
    this.known = isComplete ? plain(ids) : null;
  }

  /**
   * A call of a claim found so many due jobs for its places, by line, each line in so many partitions. Few partitions are
   * cheaper to read and to rotate than many, but those of a line should fill its part of the places.
   */
  tune(lines: Iterable<{ readonly due: number; readonly partitions: number }>, places: number): void {
    const withJobs = [...lines].filter(({ due }) => due > 0);
    const part = (DUE_PER_PLACE * places) / withJobs.length;
    const wanted = withJobs
      .filter(({ partitions }) => partitions >= this.breadth)
      .map(({ due }) => Math.ceil(this.breadth * Math.min(2, part / due)));
    if (wanted.length === 0) return;
    this.breadth = Math.max(FEWEST_CANDIDATES, Math.min(MOST_CANDIDATES, Math.max(...wanted)));
  }
}

function inTurn(a: Candidate, b: Candidate): number {
  return (
    laneOrder[a.partition.lane] - laneOrder[b.partition.lane] ||
    a.partition.priority - b.partition.priority ||
    a.servedTurn - b.servedTurn
  );
}
