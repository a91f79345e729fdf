import { byteLength } from '../../bytes.ts';
import { admitClaim, workerKey } from '../../gate/index.ts';
import { isRetry, type Lane } from '../../job.ts';
import type { Random } from '../../retry/jitter.ts';
import { fillLines, fillQuotas } from '../fill.ts';
import { parentGate } from '../gates.ts';
import { canRun, oneOf, PROBE_CANDIDATES } from '../probe-candidates.ts';
import {
  CLAIM_BYTES,
  type Claim,
  type ClaimedJob,
  type ClaimRequest,
  GATED_NAMED,
  type GatedClaim,
  type GatedClaimRequest,
  type LimitedClaim,
  type LimitedClaimRequest,
} from '../store.ts';
import type { ClaimKind, Partition } from './partitions.ts';
import { type Lease, type Row, toClaimedJob } from './row.ts';
import type { MemoryState } from './state.ts';

export function claim(state: MemoryState, request: ClaimRequest, now: number): Claim {
  return new Claiming(state, request, now).claim();
}

export function claimLimited(state: MemoryState, request: LimitedClaimRequest, now: number): LimitedClaim {
  return new Claiming(state, request, now, 'limited').claimLimited();
}

export function claimGated(state: MemoryState, request: GatedClaimRequest, now: number, random: Random): GatedClaim {
  const gate = { kind: 'resource', name: request.resource } as const;
  const stored = state.gates.get(gate);
  const claiming = new Claiming(state, request, now, { resource: request.resource });
  const due = claiming.due();
  if (stored === null || due.fresh + due.retry === 0) return { jobs: [], now, nextAt: null, events: [] };
  const parent = parentGate(gate);
  const candidates = stored.phase === 'open' ? claiming.probeCandidates() : [];
  const runnable = candidates.filter((row) => canRun(request, row));
  const demand = {
    ...due,
    canProbe: runnable.length > 0,
    worker: workerKey(request.worker),
    places: request.limit,
    keptForRetries: request.queues.reduce((sum, { retry }) => sum + retry, 0),
  };
  const parentState = parent && state.gates.get(parent);
  const admission = admitClaim(stored, parentState, demand, now, random);
  const one = oneOf(admission, candidates, runnable, random);
  const jobs = one === null ? claiming.admitted(admission) : claiming.only(one, admission.epoch);
  state.gates.write({ gate, state: admission.state, events: admission.events }, now);
  if (parent !== null && admission.parent !== null && admission.parent !== parentState) {
    state.gates.write({ gate: parent, state: admission.parent, events: [] }, now);
  }
  return { jobs, now, nextAt: admission.nextAt, events: admission.events };
}

const gatedLanes = ['fresh', 'retry', 'redrive'] as const;

class Claiming {
  readonly #state: MemoryState;
  readonly #request: LimitedClaimRequest;
  readonly #now: number;
  readonly #retryCaps: ReadonlyMap<string, number>;
  readonly #kind: ClaimKind;
  readonly #jobs: ClaimedJob[] = [];
  /** How many more jobs the gate lets start, and under which epoch. */
  #admission: { fresh: number; retry: number; readonly epoch: number } = {
    fresh: Number.POSITIVE_INFINITY,
    retry: Number.POSITIVE_INFINITY,
    epoch: 0,
  };
  #bytes = 0;
  #isCutShort = false;

  constructor(state: MemoryState, request: LimitedClaimRequest, now: number, kind: ClaimKind = 'ordinary') {
    this.#kind = kind;
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
      gated: this.#state.partitions.gated(queues, this.#now, this.#request).slice(0, GATED_NAMED),
      limited: this.#state.partitions.hasLimited(queues, this.#request),
    };
  }

  claimLimited(): LimitedClaim {
    const { limit } = this.#request;
    fillQuotas(this.#request, (queue, lane, count) => (lane === 'suspect' ? 0 : this.#takeLane(queue, lane, count)));
    const isMore = this.#isCutShort || this.#jobs.length === limit;
    if (isMore) return { jobs: this.#jobs, now: this.#now, nextAt: this.#now };
    const full = this.#fullLimits();
    return { jobs: this.#jobs, now: this.#now, nextAt: this.#nextLimitedAt(), ...(full.length > 0 && { full }) };
  }

  #fullLimits(): string[] {
    const due = this.#limitedPartitions().filter(({ startsAt }) => startsAt <= this.#now);
    return [...new Set(due.flatMap(({ partition }) => this.#state.limits.full(partition, this.#now)))];
  }

  #limitedPartitions(): ReturnType<MemoryState['partitions']['limited']> {
    return this.#state.partitions.limited(
      this.#request.queues.map(({ queue }) => queue),
      this.#request,
    );
  }

  /** Of what `maxRetriesInFlight` holds back, nothing is counted. */
  #nextLimitedAt(): number | null {
    const { limits } = this.#state;
    const times = this.#limitedPartitions()
      .map(({ partition, startsAt }) => {
        if (startsAt > this.#now) return startsAt;
        return this.#room(partition.queue, partition.lane) > 0 ? limits.roomAt(partition, this.#now) : null;
      })
      .filter((at) => at !== null && Number.isFinite(at)) as number[];
    return times.length === 0 ? null : Math.min(...times);
  }

  /** What is due behind the gate, as far as the queues have room for it. */
  due(): { readonly fresh: number; readonly retry: number } {
    const count = (queue: string, lane: Lane): number => {
      const most = this.#request.limit + 1;
      const partitions = this.#partitions(queue, lane).flat();
      const due = partitions.reduce((sum, partition) => sum + this.#countDue(partition, most), 0);
      return Math.min(due, this.#room(queue, lane));
    };
    const sum = (lane: Lane): number => this.#request.queues.reduce((all, { queue }) => all + count(queue, lane), 0);
    return { fresh: sum('fresh') + sum('redrive'), retry: sum('retry') };
  }

  admitted(admission: { readonly fresh: number; readonly retry: number; readonly epoch: number }): ClaimedJob[] {
    this.#admission = { ...admission };
    fillQuotas(this.#request, (queue, lane, count) => this.#takeLane(queue, lane, count));
    return this.#jobs;
  }

  only(row: Row, epoch: number): ClaimedJob[] {
    return [start(this.#state, row, this.#request, this.#now, epoch)];
  }

  /** The jobs that are due first, of those that may start. */
  probeCandidates(): Row[] {
    return this.#request.queues
      .flatMap(({ queue }) =>
        gatedLanes.flatMap((lane) => (this.#room(queue, lane) > 0 ? this.#partitions(queue, lane) : [])),
      )
      .flatMap((partitions) => partitions.filter((partition) => this.#limitRoom(partition, 1) > 0))
      .flatMap((partition) => partition.due(this.#now))
      .sort((a, b) => a.dueAt - b.dueAt)
      .slice(0, PROBE_CANDIDATES);
  }

  /** As far as its limits let them start. */
  #countDue(partition: Partition, most: number): number {
    return this.#limitRoom(partition, partition.countDue(this.#now, most));
  }

  /** How many of `count` its limits let start. */
  #limitRoom(partition: Partition, count: number): number {
    if (partition.limits.length === 0 || partition.lane === 'suspect') return count;
    const { limit, ahead } = this.#request;
    const places = ahead === undefined ? count : limit - ahead - this.#jobs.length;
    return this.#state.limits.room(partition, this.#now, count, places);
  }

  #partitions(queue: string, lane: Lane): Partition[][] {
    return this.#state.partitions.admissible(queue, lane, this.#now, this.#request, this.#kind);
  }

  #nextDueAt(queues: readonly string[]): number | null {
    if (this.#jobs.length === this.#request.limit) return null;
    return this.#isCutShort ? this.#now : this.#state.partitions.nextDueAt(queues, this.#now, this.#request);
  }

  #takeLane(queue: string, lane: Lane, count: number): number {
    if (lane === 'suspect' && !this.#suspectMayStart(queue)) return 0;
    const pays = lane === 'retry' ? 'retry' : 'fresh';
    const places = Math.min(count, this.#room(queue, lane), this.#admission[pays]);
    let left = places;
    const { turns } = this.#state.partitions;
    for (const partitions of this.#partitions(queue, lane)) {
      left -= fillLines(
        partitions,
        left,
        turns,
        ({ line }) => line,
        (partition, wanted) => this.#takeFrom(partition, wanted),
      );
    }
    this.#admission[pays] -= places - left;
    return places - left;
  }

  #takeFrom(partition: Partition, count: number): number {
    let taken = 0;
    while (taken < count) {
      const row = partition.firstDue(this.#now);
      if (row === undefined || this.#limitRoom(partition, 1) === 0 || !this.#fits(row)) break;
      this.#jobs.push(start(this.#state, row, this.#request, this.#now, this.#admission.epoch));
      taken++;
    }
    if (taken > 0) this.#state.partitions.served(partition);
    return taken;
  }

  /** Once a payload did not fit, nothing more is taken: a smaller job must not overtake it claim after claim. */
  #fits({ payload }: Row): boolean {
    const bytes = byteLength(payload);
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
    const { running, partitions } = this.#state;
    return running.suspects(queue) === 0 && partitions.hasDue(queue, 'suspect', this.#now, this.#request);
  }
}

function start(state: MemoryState, row: Row, request: ClaimRequest, now: number, gateEpoch: number): ClaimedJob {
  const turns = state.limits.started(row, now);
  const lease: Lease = { worker: request.worker, claimedAt: now, endsAt: now + request.leaseMs, alone: false };
  state.move(row, 'running', now, {
    lease,
    turns,
    runs: row.runs + 1,
    attempts: row.attempts + 1,
    firstStartedAt: row.firstStartedAt ?? now,
  });
  return toClaimedJob(row, lease, gateEpoch);
}
