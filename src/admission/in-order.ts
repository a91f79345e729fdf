import { type Lane, lanes } from '../lane.ts';
import type { PlannedQueue } from './offer.ts';
import type { Shares } from './shares.ts';
import { Walk, type WalkedLine } from './walk.ts';

/** A job that came, and where it came from. */
export interface TakenJob {
  readonly queue: string;
  readonly lane: Lane;
  readonly priority: number;
  readonly line: number;
  readonly partition: number;
}

/**
 * The order in which jobs of a claim start: the walk of the plan once more, over what came. `taken` lists partitions in the
 * order of the plan; `shares` and `turnOf` are those with which it was made.
 */
export function inOrder<Job extends TakenJob>(
  taken: readonly Job[],
  queues: readonly PlannedQueue[],
  shares: Shares,
  turnOf: (line: number) => number,
): Job[] {
  const lines = new Map<number, WalkedLine<Job[]> & { readonly items: Job[][] }>();
  const partitions = new Map<number, Job[]>();
  for (const job of taken) {
    const { queue, lane, priority, line: id, partition } = job;
    const line = lines.get(id) ?? { id, queue, lane, priority, items: [] };
    lines.set(id, line);
    const jobs = partitions.get(partition);
    if (jobs) jobs.push(job);
    else {
      partitions.set(partition, [job]);
      line.items.push(partitions.get(partition) as Job[]);
    }
  }
  const inTurn = [...lines.values()].sort((a, b) => turnOf(a.id) - turnOf(b.id) || a.id - b.id);
  const walk = new Walk<Job[]>(inTurn, queues, shares, lanes);
  const ordered: Job[] = [];
  for (let choice = walk.next(); choice !== null; choice = walk.next()) {
    const job = choice.item.shift();
    if (job === undefined) {
      walk.drop(choice);
      continue;
    }
    ordered.push(job);
    walk.served(choice);
  }
  return ordered;
}
