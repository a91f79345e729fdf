import { isRetry, type Lane } from '../../job.ts';
import { fillQuotas, fillTurns } from '../fill.ts';
import { CLAIM_BYTES, type Claim, type ClaimedJob, type ClaimRequest } from '../store.ts';
import type { Partition } from './partitions.ts';
import { type Lease, type Row, toClaimedJob } from './row.ts';
import type { MemoryState } from './state.ts';

export function claim(state: MemoryState, request: ClaimRequest, now: number): Claim {
  return new Claiming(state, request, now).claim();
}

class Claiming {
  readonly #state: MemoryState;
  readonly #request: ClaimRequest;
  readonly #now: number;
  readonly #retryCaps: ReadonlyMap<string, number>;
  readonly #jobs: ClaimedJob[] = [];
  #bytes = 0;
  #isCutShort = false;

  constructor(state: MemoryState, request: ClaimRequest, now: number) {
    this.#state = state;
    this.#request = request;
    this.#now = now;
    this.#retryCaps = new Map(
      request.queues.map(({ queue, maxRetriesInFlight }) => [queue, maxRetriesInFlight ?? Number.POSITIVE_INFINITY]),
    );
  }

  claim(): Claim {
    fillQuotas(this.#request, (queue, lane, count) => this.#takeLane(queue, lane, count));
    const queues = this.#request.queues.map(({ queue }) => queue);
    return {
      jobs: this.#jobs,
      now: this.#now,
      nextDueAt: this.#nextDueAt(queues),
      suspectsWait: queues.some((queue) => this.#suspectMayStart(queue) && this.#room(queue, 'suspect') > 0),
    };
  }

  #nextDueAt(queues: readonly string[]): number | null {
    if (this.#jobs.length === this.#request.limit) return null;
    return this.#isCutShort ? this.#now : this.#state.partitions.nextDueAt(queues, this.#now);
  }

  #takeLane(queue: string, lane: Lane, count: number): number {
    if (lane === 'suspect' && !this.#suspectMayStart(queue)) return 0;
    const places = Math.min(count, this.#room(queue, lane));
    let left = places;
    for (const partitions of this.#state.partitions.admissible(queue, lane, this.#now)) {
      left -= fillTurns(partitions, left, (partition, wanted) => this.#takeFrom(partition, wanted));
    }
    return places - left;
  }

  #takeFrom(partition: Partition, count: number): number {
    let taken = 0;
    while (taken < count) {
      const row = partition.firstDue(this.#now);
      if (row === undefined || !this.#fits(row)) break;
      this.#jobs.push(start(this.#state, row, this.#request, this.#now));
      taken++;
    }
    if (taken > 0) this.#state.partitions.served(partition);
    return taken;
  }

  /** Once a payload did not fit, nothing more is taken: a smaller job must not overtake it claim after claim. */
  #fits({ payload }: Row): boolean {
    const bytes = Buffer.byteLength(payload);
    if (this.#jobs.length > 0 && this.#bytes + bytes > CLAIM_BYTES) this.#isCutShort = true;
    if (!this.#isCutShort) this.#bytes += bytes;
    return !this.#isCutShort;
  }

  /** How many more jobs of this lane `maxRetriesInFlight` lets start. */
  #room(queue: string, lane: Lane): number {
    if (!isRetry(lane)) return Number.POSITIVE_INFINITY;
    const free = (this.#retryCaps.get(queue) as number) - this.#state.running.retries(queue);
    return Math.max(0, lane === 'retry' && this.#suspectMayStart(queue) ? free - 1 : free);
  }

  #suspectMayStart(queue: string): boolean {
    return this.#state.running.suspects(queue) === 0 && this.#state.partitions.hasDue(queue, 'suspect', this.#now);
  }
}

function start(state: MemoryState, row: Row, request: ClaimRequest, now: number): ClaimedJob {
  const lease: Lease = { worker: request.worker, claimedAt: now, endsAt: now + request.leaseMs, alone: false };
  state.move(row, 'running', now, {
    lease,
    runs: row.runs + 1,
    attempts: row.attempts + 1,
    firstStartedAt: row.firstStartedAt ?? now,
  });
  return toClaimedJob(row, lease);
}
