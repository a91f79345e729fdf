import type { Lane } from '../../job.ts';
import type { LimitKey } from '../../limit/limit.ts';
import { fillQuotas } from '../fill.ts';
import type { LimitedClaim, LimitedClaimRequest } from '../store.ts';
import { type ClaimedQueue, claimedQueues } from './claimed-queues.ts';
import { bringBack, isAnyFreed } from './limit-waits.ts';
import { type PackedJobs, type PackedRequest, packJobs, unpackRequest } from './packed-claim.ts';
import type { Partition, Tier } from './partitions.ts';
import { NEVER } from './restrictions.ts';
import type { Session } from './session.ts';
import { TakenRows } from './taken-rows.ts';

/*
 * A claim of jobs behind limits. It takes as `claim` does, tier by tier and by turns, from the queues under which such jobs
 * lie. A partition that has no room is read once: it then waits for its key (limit-waits.ts). While the total of a limit is
 * full, the queues of that limit are left out and nothing is written. So what a claim reads is what it takes, a few
 * partitions that are brought back, and those that it lets wait, however many keys there are.
 */

/** So many partitions of a tier share the places at a time. */
const PARTITIONS_AT_ONCE = 64;
/** A claim lets at most about so many partitions wait: after a change of a limit they may all be without room. */
const MOST_WITHOUT_ROOM = 1_000;

export interface PackedLimitedClaim extends Omit<LimitedClaim, 'jobs'> {
  readonly jobs: PackedJobs;
}

export function claimLimited(session: Session, packed: PackedRequest<LimitedClaimRequest>): PackedLimitedClaim {
  const request = unpackRequest(session, packed);
  const taken = new TakenRows(session, request);
  const hasMore = bringBack(session, taken.limits);
  return new LimitedClaiming(session, request, taken).fill(hasMore);
}

/** Answers without a write transaction when it would take nothing and bring nothing back; null when it takes a write. */
export function claimLimitedNothing(
  session: Session,
  packed: PackedRequest<LimitedClaimRequest>,
): PackedLimitedClaim | null {
  if (isAnyFreed(session)) return null;
  const request = unpackRequest(session, packed);
  const claiming = new LimitedClaiming(session, request, new TakenRows(session, request));
  return claiming.mayTake() ? null : claiming.answer(claiming.nextAt());
}

class LimitedClaiming {
  readonly #session: Session;
  readonly #request: LimitedClaimRequest;
  readonly #queues: ReadonlyMap<string, ClaimedQueue>;
  readonly #taken: TakenRows;
  /** Names of limits that kept a due job from starting. */
  readonly #full: Set<string> = new Set();
  #withoutRoom = 0;

  constructor(session: Session, request: LimitedClaimRequest, taken: TakenRows) {
    this.#session = session;
    this.#request = request;
    this.#queues = claimedQueues(session, request, 'its limits');
    this.#taken = taken;
  }

  mayTake(): boolean {
    return [...this.#queues.values()].some((queue) =>
      queue.tiers.some((tier) => queue.isAdmissible(tier) && this.#isOpen(queue, tier) && queue.room(tier.lane) > 0),
    );
  }

  fill(hasMore: boolean): PackedLimitedClaim {
    fillQuotas(this.#request, (name, lane, count) =>
      lane === 'suspect' ? 0 : this.#takeLane(this.#queues.get(name) as ClaimedQueue, lane, count),
    );
    const { rows, isCutShort } = this.#taken;
    const isStopped = isCutShort || rows.length === this.#request.limit || this.#withoutRoom >= MOST_WITHOUT_ROOM;
    return this.answer(hasMore || isStopped ? this.#session.now : this.nextAt());
  }

  answer(nextAt: number | null): PackedLimitedClaim {
    const jobs = packJobs(this.#session, this.#taken.rows);
    return { jobs, now: this.#session.now, nextAt, ...(this.#full.size > 0 && { full: [...this.#full] }) };
  }

  nextAt(): number | null {
    const tiers = [...this.#queues.values()].flatMap((queue) => queue.readTiers());
    const next = Math.min(NEVER, ...tiers.map((tier) => this.#session.partitions.nextAdmissibleAt(tier)));
    return next === NEVER ? null : next;
  }

  #takeLane(queue: ClaimedQueue, lane: Lane, count: number): number {
    const places = Math.min(count, queue.room(lane));
    return queue.takeTurns(lane, places, (tier, part) => this.#takeFrom(queue, tier, part));
  }

  #takeFrom(queue: ClaimedQueue, tier: Tier, places: number): number {
    const { partitions } = this.#session;
    const roomOf = (partition: Partition, wanted: number): number => this.#roomOf(partition, tier.lane, wanted);
    let left = places;
    // This ends because each round takes a job, or moves every partition that it looked at out of the admissible ones, or
    // closes the tier. A rule that leaves a due job where it is must remember which partitions it has read.
    while (left > 0 && !this.#taken.isCutShort && this.#withoutRoom < MOST_WITHOUT_ROOM && this.#isOpen(queue, tier)) {
      const admissible = partitions.admissible(tier, PARTITIONS_AT_ONCE);
      if (admissible.length === 0) break;
      const { taken, read, withoutRoom } = this.#taken.takeTurns(admissible, left, roomOf);
      for (const partition of withoutRoom) this.#letWait(partition, tier.lane);
      partitions.served(
        tier,
        read.filter((partition) => !this.#letWait(partition, tier.lane)),
      );
      left -= taken;
      // What a claim ahead leaves is still admissible.
      if (taken === 0 && this.#request.ahead) break;
    }
    return places - left;
  }

  /** Lets a partition wait for the key that has no room; false when all have some, or the total of a limit is full. */
  #letWait(partition: Partition, lane: Lane): boolean {
    const { limits } = this.#taken;
    const wait = limits.waitOf(limits.parse(partition.limits as string), lane);
    if (wait === null) return false;
    this.#session.partitions.wait(partition, wait);
    this.#full.add((limits.parse(wait.for)[0] as LimitKey).limit);
    this.#withoutRoom++;
    return true;
  }

  #roomOf({ limits: text }: Partition, lane: Lane, count: number): number {
    const { limits, rows } = this.#taken;
    const { limit, ahead = 0 } = this.#request;
    return limits.room(limits.parse(text as string), lane, count, limit - ahead - rows.length);
  }

  /** Whether the totals of its limits have room. */
  #isOpen({ limited }: ClaimedQueue, tier: Tier): boolean {
    const names = limited.find(({ id }) => id === tier.queue)?.limits ?? [];
    const full = names.filter((name) => this.#taken.limits.isTotalFull(name));
    for (const name of full) this.#full.add(name);
    return full.length === 0;
  }
}
