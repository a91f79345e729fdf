import type { Lane } from '../job.ts';
import type { ClaimRequest, QueueQuota } from './store.ts';
import type { Turns } from './turns.ts';

/** Takes up to `count` due jobs of one lane of one queue, as many as may start, and answers how many it took. */
export type Take = (queue: string, lane: Lane, count: number) => number;

/**
 * How a claim's places are filled, for every store that can take lane by lane.
 *
 * Each queue first gets its share, then the queues in turn take what is left (work-conserving).
 * A queue that is asked for suspects gives nothing else: whoever asks has made room to run one alone.
 * Otherwise, inside a queue: up to the kept places retries and redrives, each lending the other what it leaves; then fresh work; and when no fresh work is left,
 * retries and redrives take the rest.
 */
export function fillQuotas(request: ClaimRequest, take: Take): number {
  let left = request.limit;
  const queues = request.queues.map((quota) => new QueueFill(quota, take));
  for (const queue of queues) left -= queue.fill(Math.min(left, queue.share));
  for (const queue of queues) {
    if (left <= 0) break;
    left -= queue.fill(left);
  }
  return request.limit - left;
}

/**
 * How the places of one lane and priority are shared: among its lines (turns.ts), and those of a line among its partitions,
 * which come least recently served first.
 */
export function fillLines<Partition>(
  partitions: readonly Partition[],
  places: number,
  turns: Turns,
  lineOf: (partition: Partition) => string,
  take: (partition: Partition, count: number) => number,
): number {
  const lines = turns.inOrder([...Map.groupBy(partitions, lineOf)], ([line]) => line);
  return fillTurns(lines, places, ([, ofLine], count) => fillTurns(ofLine, count, take));
}

/**
 * Shares places among those that take turns: each takes an equal part, and what one leaves is shared among the others in the
 * same way. They come least recently served first, so when there are fewer places than there are of them, those that were
 * not served come first the next time.
 */
export function fillTurns<Taker>(
  takers: readonly Taker[],
  places: number,
  take: (taker: Taker, count: number) => number,
): number {
  let left = places;
  let waiting = takers;
  while (left > 0 && waiting.length > 0) {
    const part = Math.max(1, Math.floor(left / waiting.length));
    const notEmpty: Taker[] = [];
    for (const taker of waiting) {
      if (left === 0) break;
      const taken = take(taker, part);
      if (taken === part) notEmpty.push(taker);
      left -= taken;
    }
    waiting = notEmpty;
  }
  return places - left;
}

class QueueFill {
  readonly share: number;
  readonly #queue: string;
  readonly #take: Take;
  readonly #isTrial: boolean;
  readonly #left: Record<'retry' | 'redrive' | 'suspect', number>;
  /** A lane that gave less than it was asked for is empty for the rest of this claim. */
  readonly #empty: Set<Lane> = new Set();

  constructor(quota: QueueQuota, take: Take) {
    this.share = quota.share;
    this.#queue = quota.queue;
    this.#take = take;
    this.#isTrial = quota.suspect > 0;
    this.#left = { retry: quota.retry, redrive: quota.redrive, suspect: quota.suspect };
  }

  fill(places: number): number {
    let left = places;
    const draw = (lane: Lane, count: number): number => {
      const wanted = Math.min(left, count);
      if (wanted <= 0 || this.#empty.has(lane)) return 0;
      const taken = this.#take(this.#queue, lane, wanted);
      if (taken < wanted) this.#empty.add(lane);
      left -= taken;
      return taken;
    };

    if (this.#isTrial) {
      this.#left.suspect -= draw('suspect', this.#left.suspect);
      return places - left;
    }
    this.#left.retry -= draw('retry', this.#left.retry);
    this.#left.redrive -= draw('redrive', this.#left.redrive);
    if (this.#empty.has('redrive')) this.#left.redrive -= draw('retry', this.#left.redrive);
    if (this.#empty.has('retry')) this.#left.retry -= draw('redrive', this.#left.retry);
    draw('fresh', left);
    draw('retry', left);
    draw('redrive', left);
    return places - left;
  }
}
