import type { QueueQuota } from '../store/store.ts';

/** How a worker serves one queue. */
export interface QueuePlan {
  readonly queue: string;
  /** Its part of the worker's places, relative to the other queues. */
  readonly weight: number;
  /** The part of its places that second chances may take while fresh work waits. */
  readonly retryShare: number;
  readonly maxRetriesInFlight: number | null;
}

/**
 * Turns shares into whole places, claim by claim. What a fraction leaves over is carried to the next claim, so a
 * share of 0.2 lets every fifth place through even when claims take one job at a time.
 */
export class Quotas {
  readonly #queues: readonly QueueCredit[];

  constructor(plans: readonly QueuePlan[]) {
    const total = plans.reduce((sum, plan) => sum + plan.weight, 0);
    this.#queues = plans.map((plan) => new QueueCredit(plan, plan.weight / total));
  }

  /** The quotas of a claim of `limit` jobs; the queue that is owed most comes first. */
  next(limit: number): QueueQuota[] {
    const quotas = this.#queues.map((queue) => queue.next(limit, this.#queues.length === 1));
    return quotas.sort((a, b) => b.owed - a.owed).map(({ quota }) => quota);
  }

  /** For a worker that has emptied itself to run one suspect alone. */
  suspect(): QueueQuota[] {
    return this.#queues.map(({ plan }) => ({ ...nothing(plan), share: 1, suspect: 1 }));
  }

  /** Places that were granted but found no job are given back, or an idle queue would save up a burst. */
  settle(limit: number, taken: number): void {
    if (taken < limit) for (const queue of this.#queues) queue.forget();
  }
}

function nothing(plan: QueuePlan): QueueQuota {
  const { queue, maxRetriesInFlight } = plan;
  return { queue, share: 0, retry: 0, redrive: 0, suspect: 0, maxRetriesInFlight };
}

class QueueCredit {
  readonly plan: QueuePlan;
  readonly #part: number;
  #places = 0;
  #seconds = 0;
  #redrives = 0;

  constructor(plan: QueuePlan, part: number) {
    this.plan = plan;
    this.#part = part;
  }

  next(limit: number, isOnly: boolean): { quota: QueueQuota; owed: number } {
    this.#places += limit * this.#part;
    const owed = this.#places;
    const share = isOnly ? limit : whole(this.#places);
    this.#places -= share;
    // Over the whole claim, not only its share: when other queues are empty, this one gets their places too.
    this.#seconds += (isOnly ? limit : Math.max(share, limit * this.#part)) * this.plan.retryShare;
    const seconds = Math.min(limit, whole(this.#seconds));
    this.#seconds -= seconds;
    // Half of the second chances are for redriven jobs, when both kinds wait.
    this.#redrives += seconds / 2;
    const redrive = whole(this.#redrives);
    this.#redrives -= redrive;
    return { quota: { ...nothing(this.plan), share, retry: seconds - redrive, redrive }, owed };
  }

  forget(): void {
    this.#places = 0;
    this.#seconds = 0;
    this.#redrives = 0;
  }
}

/** Five times 0.2 is not quite 1 in binary. */
function whole(credit: number): number {
  return Math.floor(credit + 1e-9);
}
