import type { Lane } from '../lane.ts';
import type { PlannedQueue } from './offer.ts';

/*
 * Who has the next place: queues by their weights, inside a queue fresh work against retries and redrives by its share, and
 * retries against redrives by halves.
 *
 * Each of these flows has a virtual time: what it got, divided by its weight. The one with the least is next. A flow that is
 * busy (it has work that may start) keeps what it is owed; every other one is lifted to the least busy one, because nothing
 * is saved up while idle, paused or shut.
 */

/** Virtual times of one queue and of the flows in it. */
export interface QueueShares {
  readonly queue: number;
  readonly fresh: number;
  readonly again: number;
  readonly retry: number;
  readonly redrive: number;
}

/** By queue. Plain data: a worker keeps it from claim to claim. */
export type Shares = Readonly<Record<string, QueueShares>>;

export interface Flow {
  readonly queue: string;
  readonly lane: Lane;
}

const none: QueueShares = { queue: 0, fresh: 0, again: 0, retry: 0, redrive: 0 };

export function sharesOf(shares: Shares, queue: string): QueueShares {
  return shares[queue] ?? none;
}

/** The flow that has the next place among those that can give a job. Ties go in the order of the queues, fresh work first. */
export function nextFlow(
  shares: Shares,
  queues: readonly PlannedQueue[],
  canGive: (queue: string, lane: Lane) => boolean,
): Flow | null {
  const some = (queue: string, ...of: Lane[]): boolean => of.some((lane) => canGive(queue, lane));
  const chosen = least(
    queues.filter(({ queue }) => some(queue, 'fresh', 'retry', 'redrive', 'suspect')),
    ({ queue, weight }) => ({ time: sharesOf(shares, queue).queue, weight }),
  );
  if (chosen === null) return null;
  const { queue, retryShare } = chosen;
  const times = sharesOf(shares, queue);
  if (canGive(queue, 'suspect')) return { queue, lane: 'suspect' };
  const sides = [
    ...(canGive(queue, 'fresh') ? [{ side: 'fresh', time: times.fresh, weight: 1 - retryShare } as const] : []),
    ...(some(queue, 'retry', 'redrive') ? [{ side: 'again', time: times.again, weight: retryShare } as const] : []),
  ];
  if (least(sides, (side) => side)?.side === 'fresh') return { queue, lane: 'fresh' };
  const again = (['retry', 'redrive'] as const).filter((lane) => canGive(queue, lane));
  return { queue, lane: least(again, (lane) => ({ time: times[lane], weight: 1 })) ?? 'retry' };
}

/** After so many places went to a flow. */
export function charged(
  shares: Shares,
  { weight, retryShare }: PlannedQueue,
  { queue, lane }: Flow,
  places = 1,
): Shares {
  const times = { ...sharesOf(shares, queue) };
  times.queue += places / weight;
  if (lane === 'fresh') times.fresh += over(places, 1 - retryShare);
  else if (lane !== 'suspect') {
    times.again += over(places, retryShare);
    times[lane] += places;
  }
  return { ...shares, [queue]: times };
}

/** A side without a share has no time: it gets what the other leaves. */
function over(places: number, weight: number): number {
  return weight > 0 ? places / weight : 0;
}

/**
 * The shares after a claim. `taken`: what came; `busy`: flows that still had work which may start. What a busy flow is owed
 * is bounded by what the claim could have given it, and one place more: claims of one job must carry their fractions over.
 */
export function settleShares(
  shares: Shares,
  queues: readonly PlannedQueue[],
  places: number,
  taken: readonly Flow[],
  busy: readonly Flow[],
): Shares {
  const byName = new Map(queues.map((queue) => [queue.queue, queue]));
  let after = shares;
  for (const flow of taken) {
    const queue = byName.get(flow.queue);
    if (queue) after = charged(after, queue, flow);
  }
  const isBusy = (queue: string, ...of: Lane[]): boolean =>
    busy.some((flow) => flow.queue === queue && of.includes(flow.lane));
  const levelled = (flows: readonly Levelled[]): number[] => level(flows, places);
  const queueTimes = levelled(
    queues.map(({ queue, weight }) => ({
      time: sharesOf(after, queue).queue,
      weight,
      isBusy: isBusy(queue, 'fresh', 'retry', 'redrive', 'suspect'),
    })),
  );
  const entries = queues.map(({ queue, retryShare }, index): [string, QueueShares] => {
    const times = sharesOf(after, queue);
    const [fresh = 0, again = 0] = levelled([
      { time: times.fresh, weight: 1 - retryShare, isBusy: isBusy(queue, 'fresh') },
      { time: times.again, weight: retryShare, isBusy: isBusy(queue, 'retry', 'redrive') },
    ]);
    const [retry = 0, redrive = 0] = levelled([
      { time: times.retry, weight: 1, isBusy: isBusy(queue, 'retry') },
      { time: times.redrive, weight: 1, isBusy: isBusy(queue, 'redrive') },
    ]);
    return [queue, { queue: queueTimes[index] ?? 0, fresh, again, retry, redrive }];
  });
  return Object.fromEntries(entries);
}

interface Levelled {
  readonly time: number;
  readonly weight: number;
  readonly isBusy: boolean;
}

/** Times begin at that of the least busy flow again, so that they do not grow for ever. */
function level(flows: readonly Levelled[], places: number): number[] {
  const weights = flows.map(({ weight }) => weight).filter((weight) => weight > 0);
  const furthest = Math.max(...flows.map(({ time }) => time)) - (places + 1) / Math.min(...weights);
  const clamped = flows.map(({ time, isBusy }) => (isBusy ? Math.max(time, furthest) : time));
  const least = Math.min(...clamped.filter((_, index) => flows[index]?.isBusy));
  if (!Number.isFinite(least)) return flows.map(() => 0);
  return clamped.map((time) => Math.max(0, time - least));
}

function least<T>(from: readonly T[], of: (item: T) => { readonly time: number; readonly weight: number }): T | null {
  let best: T | null = null;
  for (const item of from) {
    const { time, weight } = of(item);
    if (weight <= 0) continue;
    if (best === null || time < of(best).time) best = item;
  }
  return best ?? from[0] ?? null;
}
