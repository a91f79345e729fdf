import type { ClaimedJob, QueueQuota } from '../store/store.ts';

/** How a worker serves one queue. */
export interface QueuePlan {
  readonly queue: string;
  /** Its part of the worker's places, relative to the other queues. */
  readonly weight: number;
  /** The part of its places that retries and redrives may take while fresh work waits. */
  readonly retryShare: number;
  readonly maxRetriesInFlight: number | null;
}

/**
 * Turns shares into whole places, claim by claim. What a fraction leaves over is carried to the next claim, so a
 * share of 0.2 lets every fifth place through even when claims take one job at a time.
 *
 * Credit is settled by what a claim really took: a queue that had to stand back is owed its places, and one that took
 * what others left has them counted. Nothing is saved up while idle, or a queue that wakes up would hold a burst.
 */
export class Quotas {
  readonly #queues: readonly QueueCredit[];
  #suspectTurn = 0;

  constructor(plans: readonly QueuePlan[]) {
    const total = plans.reduce((sum, plan) => sum + plan.weight, 0);
    this.#queues = plans.map((plan) => new QueueCredit(plan, plan.weight / total));
  }

  /** The quotas of a claim of `limit` jobs; the queue that is owed most comes first. */
  next(limit: number): QueueQuota[] {
    return this.#queues
      .map((queue) => queue.offer(limit))
      .sort((a, b) => b.owed - a.owed)
      .map(({ quota }) => quota);
  }

  /** The quotas of a claim for one suspect. Each time another queue comes first, so that many suspects of one cannot starve others. */
  suspect(): QueueQuota[] {
    const first = this.#suspectTurn++ % this.#queues.length;
    const inTurn = [...this.#queues.slice(first), ...this.#queues.slice(0, first)];
    return inTurn.map(({ plan }) => ({ ...nothing(plan), share: 1, suspect: 1 }));
  }

  /** What came of the claim that `next` was asked for last. A claim that failed is not settled, and changes nothing. */
  settle(limit: number, jobs: readonly Pick<ClaimedJob, 'queue' | 'lane'>[]): void {
    if (jobs.length < limit) {
      for (const queue of this.#queues) queue.forget();
      return;
    }
    let left = 0;
    const busy: QueueCredit[] = [];
    for (const queue of this.#queues) {
      const unused = queue.charge(limit, countLanes(jobs, queue.plan.queue));
      if (unused === null) busy.push(queue);
      else left += unused;
    }
    const parts = busy.reduce((sum, { part }) => sum + part, 0);
    for (const queue of busy) queue.inherit((left * queue.part) / parts);
  }
}

function nothing(plan: QueuePlan): QueueQuota {
  const { queue, maxRetriesInFlight } = plan;
  return { queue, share: 0, retry: 0, redrive: 0, suspect: 0, maxRetriesInFlight };
}

interface Taken {
  places: number;
  retry: number;
  redrive: number;
}

function countLanes(jobs: readonly Pick<ClaimedJob, 'queue' | 'lane'>[], queue: string): Taken {
  const taken = { places: 0, retry: 0, redrive: 0 };
  for (const job of jobs) {
    if (job.queue !== queue) continue;
    taken.places++;
    if (job.lane === 'retry' || job.lane === 'redrive') taken[job.lane]++;
  }
  return taken;
}

class QueueCredit {
  readonly plan: QueuePlan;
  readonly part: number;
  /** Places it is owed; below 0 when it took what was others'. */
  #places = 0;
  /** Retries and redrives it is owed. */
  #retryCredit = 0;
  /** The part of them that is owed to redrives. */
  #redriveCredit = 0;
  #offered: QueueQuota;

  constructor(plan: QueuePlan, part: number) {
    this.plan = plan;
    this.part = part;
    this.#offered = nothing(plan);
  }

  offer(limit: number): { quota: QueueQuota; owed: number } {
    const owed = this.#places + limit * this.part;
    const share = Math.min(limit, Math.max(0, whole(owed)));
    // Not only over its share: when other queues are empty, this one gets their places too.
    const expected = Math.max(share, limit * this.part);
    const retries = Math.min(limit, Math.max(0, whole(this.#retryCredit + expected * this.plan.retryShare)));
    // Half of them are for redrives, when both lanes wait.
    const redrive = Math.min(retries, Math.max(0, whole(this.#redriveCredit + retries / 2)));
    this.#offered = { ...nothing(this.plan), share, retry: retries - redrive, redrive };
    return { quota: this.#offered, owed };
  }

  /** Answers what it leaves of its places when nothing more of it is due, else null. */
  charge(limit: number, taken: Taken): number | null {
    this.#chargeRetries(taken);
    this.#places += limit * this.part - taken.places;
    if (taken.places >= this.#offered.share) return null;
    const unused = Math.max(0, this.#places);
    this.#places = 0;
    return unused;
  }

  #chargeRetries({ places, retry, redrive }: Taken): void {
    const offered = this.#offered;
    const granted = offered.retry + offered.redrive;
    // Beyond what was kept for them, they only took what fresh work left.
    const used = Math.min(granted, retry + redrive);
    this.#retryCredit += places * this.plan.retryShare - used;
    this.#redriveCredit += used / 2 - Math.min(offered.redrive, redrive);
    // A lane that left places to others is empty; one that found no place left is not.
    const gaveWay = places > used;
    if (used < granted && gaveWay) this.#retryCredit = Math.min(0, this.#retryCredit);
    if (redrive < offered.redrive && (gaveWay || retry > offered.retry)) this.#redriveCredit = 0;
  }

  inherit(places: number): void {
    this.#places += places;
  }

  forget(): void {
    this.#places = 0;
    this.#retryCredit = 0;
    this.#redriveCredit = 0;
  }
}

/** Five times 0.2 is not quite 1 in binary. */
function whole(credit: number): number {
  return Math.floor(credit + 1e-9);
}
