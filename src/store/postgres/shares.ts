import type { Lane } from '../../job.ts';
import { fillLines, fillQuotas } from '../fill.ts';
import type { ClaimRequest } from '../store.ts';
import type { Turns } from '../turns.ts';
import { plain } from './connection/arrays.ts';
import { lineOf, type Partition } from './partitions.ts';

/** How many jobs of a lane may be claimed. Any number where nothing is said. */
export type Room = ReadonlyMap<string, number>;

const MOST_INT = 2 ** 31 - 1;

/** The cap on running retries of each queue, as SQL takes it: what no queue can reach is a cap that an `int` holds. */
export function capsOf(queues: ClaimRequest['queues']): string {
  return plain(queues.map(({ maxRetriesInFlight: cap }) => (cap === null ? null : Math.min(cap, MOST_INT))));
}

export function laneKey(queue: string, lane: Lane): string {
  return `${lane} ${queue}`;
}

/**
 * Shares the places of a claim among partitions: `fillQuotas` among queues and lanes, then priority by priority,
 * `fillLines` among the partitions of a priority, by the turns of their lines and in their order. `take` is asked for a number of jobs, perhaps several
 * times, and answers how many the partition gives.
 */
export function share<Candidate extends { readonly partition: Partition }>(
  request: ClaimRequest,
  candidates: Iterable<Candidate>,
  room: Room,
  turns: Turns,
  take: (candidate: Candidate, count: number) => number,
): void {
  const lanes = new Map<string, Map<number, Candidate[]>>();
  for (const candidate of candidates) {
    const { queue, lane, priority } = candidate.partition;
    const priorities = lanes.get(laneKey(queue, lane)) ?? new Map<number, Candidate[]>();
    lanes.set(laneKey(queue, lane), priorities);
    const partitions = priorities.get(priority) ?? [];
    priorities.set(priority, partitions);
    partitions.push(candidate);
  }
  const left = new Map(room);
  fillQuotas(request, (queue, lane, count) => {
    const key = laneKey(queue, lane);
    const priorities = lanes.get(key) ?? new Map<number, Candidate[]>();
    const places = Math.min(count, left.get(key) ?? count);
    let taken = 0;
    for (const priority of [...priorities.keys()].sort((a, b) => a - b)) {
      const ofPriority = priorities.get(priority) as Candidate[];
      taken += fillLines(ofPriority, places - taken, turns, ({ partition }) => lineOf(partition), take);
    }
    if (left.has(key)) left.set(key, (left.get(key) as number) - taken);
    return taken;
  });
}
