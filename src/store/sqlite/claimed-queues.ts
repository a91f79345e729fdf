import { isRetry, type Lane } from '../../job.ts';
import type { Reader } from '../aside.ts';
import { LANE, STATE } from '../codes.ts';
import { fillTurns } from '../fill.ts';
import type { ClaimRequest, QueueQuota } from '../store.ts';
import { readableAsides } from './aside.ts';
import { type GatedInQueue, gatedIn } from './gated-partitions.ts';
import { isWaitedIn, type LimitedQueue, limitedQueues } from './limited-queues.ts';
import type { Tier } from './partitions.ts';
import type { Session } from './session.ts';

const RUNNING_RETRIES = `
  SELECT count(*) AS retries, count(*) FILTER (WHERE lane = ${LANE.suspect}) AS suspects FROM jobs
  WHERE state = ${STATE.running} AND lane IN (${LANE.retry}, ${LANE.suspect}) AND queue = ?`;

/** A queue, as one claim sees it. */
export class ClaimedQueue {
  readonly quota: QueueQuota;
  /** The number of its name; null when nothing stored uses it. */
  readonly id: number | null;
  /** Its own number, and those of the jobs aside in it that the worker may read. */
  readonly ids: readonly number[];
  /** Where its jobs behind limits wait, of those aside the ones that the worker may read. */
  readonly limited: readonly LimitedQueue[];
  readonly tiers: readonly Tier[];
  readonly #session: Session;
  readonly #takesLimited: boolean;

  constructor(session: Session, quota: QueueQuota, reader: Reader, from: 'itself' | 'its limits' = 'itself') {
    this.#session = session;
    this.quota = quota;
    this.id = session.strings.find(quota.queue);
    this.ids = this.id === null ? [] : [this.id, ...readableAsides(session, this.id, reader)];
    this.limited = this.id === null ? [] : limitedQueues(session, this.id, reader);
    this.#takesLimited = from === 'its limits';
    this.tiers = this.readTiers();
  }

  /** Of the jobs that this claim takes. */
  readTiers(): Tier[] {
    return this.#tiersIn(this.#takesLimited ? this.limited.map(({ id }) => id) : this.ids);
  }

  #tiersIn(ids: readonly number[]): Tier[] {
    return ids.flatMap((id) => this.#session.partitions.tiers(id, this.id as number));
  }

  /**
   * Takes up to `places` jobs of a lane, priority by priority, by the turns of the admissible tiers: its own and those of jobs
   * aside. `take` takes up to so many from one tier, and answers how many it took.
   */
  takeTurns(lane: Lane, places: number, take: (tier: Tier, count: number) => number): number {
    const { turns } = this.#session;
    const tiers = this.tiers.filter((tier) => tier.lane === lane && this.isAdmissible(tier)).sort(byPriority);
    let left = places;
    for (const ofPriority of Map.groupBy(tiers, ({ priority }) => priority).values()) {
      left -= fillTurns(turns.inOrder(ofPriority, tierName), left, (tier, count) => {
        const taken = take(tier, count);
        if (taken > 0) turns.served(tierName(tier));
        return taken;
      });
    }
    return places - left;
  }

  gated(): GatedInQueue[] {
    const ids = [...this.ids, ...this.limited.map(({ id }) => id)];
    return ids.map((id) => gatedIn(this.#session, id, this.id as number));
  }

  /** Whether jobs wait behind limits, and not behind a gate as well. */
  hasLimited(): boolean {
    return this.limited.some(({ id }) => isWaitedIn(this.#session, id));
  }

  /** How many more jobs of this lane may start in the queue, over all workers. */
  room(lane: Lane): number {
    const cap = this.quota.maxRetriesInFlight ?? Number.POSITIVE_INFINITY;
    if (!isRetry(lane) || (lane === 'retry' && cap === Number.POSITIVE_INFINITY)) return Number.POSITIVE_INFINITY;
    const { retries, suspects } = this.#session.sql(RUNNING_RETRIES).get(this.id) as {
      retries: number;
      suspects: number;
    };
    if (lane === 'suspect') return suspects > 0 ? 0 : Math.max(0, cap - retries);
    // One place is for the suspect, so that other retries cannot keep it from ever starting.
    const kept = suspects === 0 && this.hasDueSuspect() ? 1 : 0;
    return Math.max(0, cap - retries - kept);
  }

  hasDueSuspect(): boolean {
    const tiers = this.#takesLimited ? this.#tiersIn(this.ids) : this.tiers;
    return tiers.some((tier) => tier.lane === 'suspect' && this.isAdmissible(tier));
  }

  /** Whether its first job may start now, told without reading rows. `mayTake`, `takeTurns` and `hasDueSuspect` all ask here. */
  isAdmissible(tier: Tier): boolean {
    return tier.admissibleAt <= this.#session.now;
  }
}

/** And inside a priority, the one first whose first partition would come first in a tier of all. */
function byPriority(a: Tier, b: Tier): number {
  return a.priority - b.priority || a.admissibleAt - b.admissibleAt || a.turn - b.turn || a.first - b.first;
}

/** For its turn. */
export function tierName({ queue, lane, priority, line }: Pick<Tier, 'queue' | 'lane' | 'priority' | 'line'>): string {
  return `${queue} ${lane} ${priority} ${line}`;
}

/** By name, in the order of the request. */
export function claimedQueues(
  session: Session,
  request: ClaimRequest,
  from: 'itself' | 'its limits' = 'itself',
): Map<string, ClaimedQueue> {
  return new Map(request.queues.map((quota) => [quota.queue, new ClaimedQueue(session, quota, request, from)]));
}
