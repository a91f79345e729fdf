import type { Lane } from '../../job.ts';
import { fillQuotas } from '../fill.ts';
import { type Claim, type ClaimRequest, GATED_NAMED } from '../store.ts';
import { type ClaimedQueue, claimedQueues } from './claimed-queues.ts';
import type { GatedInQueue } from './gated-partitions.ts';
import { type PackedJobs, type PackedRequest, packJobs, unpackRequest } from './packed-claim.ts';
import type { Tier } from './partitions.ts';
import { NEVER } from './restrictions.ts';
import type { Session } from './session.ts';
import { TakenRows } from './taken-rows.ts';

/*
 * A claim asks each queue for its tiers, which tell whether anything may start. `fillQuotas` then says how many jobs of
 * which lane to take; a lane takes them priority by priority, and `fillTurns` shares them among its tiers and, inside a tier, among the partitions. What a
 * claim reads is what it takes, and an index look-up per tier and partition that it takes from. Gated partitions are in
 * none of these reads; the claim names a few of their resources from an index of their own.
 */

/** So many partitions of a tier share the places at a time. */
const PARTITIONS_AT_ONCE = 16;

export interface PackedClaim extends Omit<Claim, 'jobs'> {
  readonly jobs: PackedJobs;
}

export function claim(session: Session, request: PackedRequest<ClaimRequest>): PackedClaim {
  return new Claiming(session, unpackRequest(session, request)).fill();
}

/** Answers a claim that would find nothing without a write transaction; null when there may be something. */
export function claimNothing(session: Session, request: PackedRequest<ClaimRequest>): PackedClaim | null {
  const claiming = new Claiming(session, unpackRequest(session, request));
  return claiming.mayTake() ? null : claiming.answer();
}

class Claiming {
  readonly #session: Session;
  readonly #request: ClaimRequest;
  readonly #queues: ReadonlyMap<string, ClaimedQueue>;
  readonly #taken: TakenRows;

  constructor(session: Session, request: ClaimRequest) {
    this.#session = session;
    this.#request = request;
    this.#queues = claimedQueues(session, request);
    this.#taken = new TakenRows(session, request);
  }

  mayTake(): boolean {
    return [...this.#queues.values()].some((queue) =>
      queue.tiers.some(
        (tier) =>
          queue.isAdmissible(tier) &&
          (tier.lane === 'suspect') === queue.quota.suspect > 0 &&
          queue.room(tier.lane) > 0,
      ),
    );
  }

  fill(): PackedClaim {
    fillQuotas(this.#request, (queue, lane, count) =>
      this.#takeLane(this.#queues.get(queue) as ClaimedQueue, lane, count),
    );
    return this.answer();
  }

  answer(): PackedClaim {
    const { now } = this.#session;
    const { rows, isCutShort } = this.#taken;
    const queues = [...this.#queues.values()];
    const gated = queues.flatMap((queue) => queue.gated());
    return {
      jobs: packJobs(this.#session, rows),
      now,
      nextDueAt: rows.length === this.#request.limit ? null : isCutShort ? now : this.#nextDueAt(gated),
      suspectsWait: queues.some((queue) => queue.hasDueSuspect() && queue.room('suspect') > 0),
      gated: this.#namesOf(gated),
      limited: queues.some((queue) => queue.hasLimited()),
    };
  }

  #takeLane(queue: ClaimedQueue, lane: Lane, count: number): number {
    const places = Math.min(count, queue.room(lane));
    return queue.takeTurns(lane, places, (tier, part) => this.#takeFrom(tier, part));
  }

  #takeFrom(tier: Tier, places: number): number {
    const { partitions } = this.#session;
    let left = places;
    // This ends because each round takes a job or moves every partition that it read out of the admissible ones. A rule
    // that leaves a due job where it is must remember which partitions it has read.
    while (left > 0 && !this.#taken.isCutShort) {
      const admissible = partitions.admissible(tier, PARTITIONS_AT_ONCE);
      if (admissible.length === 0) break;
      const { taken, read } = this.#taken.takeTurns(admissible, left);
      partitions.served(tier, read);
      left -= taken;
    }
    return places - left;
  }

  #nextDueAt(gated: readonly GatedInQueue[]): number | null {
    const { partitions } = this.#session;
    let next = Math.min(NEVER, ...gated.map(({ nextAt }) => nextAt));
    for (const queue of this.#queues.values()) {
      // What was read before jobs were taken no longer holds.
      for (const tier of this.#taken.rows.length > 0 ? queue.readTiers() : queue.tiers)
        next = Math.min(next, partitions.nextAdmissibleAt(tier));
    }
    return next === NEVER ? null : next;
  }

  /** The longest waiting first. */
  #namesOf(gated: readonly GatedInQueue[]): string[] {
    const waiting = gated.flatMap(({ now }) => now).sort((a, b) => a.at - b.at);
    const resources = [...new Set(waiting.map(({ resource }) => resource))].slice(0, GATED_NAMED);
    return resources.map((resource) => this.#session.strings.text(resource));
  }
}
