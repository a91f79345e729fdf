import type { ClaimedJob } from '../store/store.ts';
import { ActiveJob } from './active-job.ts';
import type { Lease } from './lease.ts';

/*
 * The jobs that a worker holds a lease for. Each goes one way through these states:
 *
 *   buffered -> running -> settling -> gone
 *
 * - buffered: it is claimed and has not started. A job leaves this state without running when its worker stops, makes room
 *   for a trial, or finds its lease ended or the job cancelled; then it settles as released. When its lease was lost to
 *   another worker, it is gone at once.
 * - running: its handler is called. It takes one of the worker's places.
 * - settling: its outcome is on the way to the store. It takes no place, and keeps its lease, for at most one more lease.
 *   A run skips this state when its own transaction has recorded the outcome, or when its lease was lost.
 * - gone: the worker holds nothing of it any more.
 */
const previousStates = {
  running: ['buffered'],
  settling: ['buffered', 'running'],
  gone: ['buffered', 'running', 'settling'],
} as const satisfies Partial<Record<ActiveJob['state'], readonly ActiveJob['state'][]>>;

export class ActiveJobs {
  /**
   * No Set: one that is filled and emptied without end leaves a chain of outgrown tables behind, each of which refers to
   * the next, and the garbage collector then keeps every finished job.
   */
  readonly #all: ActiveJob[] = [];
  /** The buffered jobs, in the order in which they leave: fresh ones before others, so that none waits behind many retries. */
  readonly #first: ActiveJob[] = [];
  readonly #fresh: ActiveJob[] = [];
  readonly #others: ActiveJob[] = [];
  readonly #count: Record<ActiveJob['state'], number> = { buffered: 0, running: 0, settling: 0, gone: 0 };
  readonly #goesFirst: (job: ClaimedJob) => boolean;
  #onEmpty: (() => void)[] = [];

  /** @param goesFirst whether a job leaves the buffer before the others */
  constructor(goesFirst: (job: ClaimedJob) => boolean = () => false) {
    this.#goesFirst = goesFirst;
  }

  get size(): number {
    return this.#all.length;
  }

  get buffered(): number {
    return this.#count.buffered;
  }

  get running(): number {
    return this.#count.running;
  }

  /** Those that leave the buffer first. */
  get leavingFirst(): number {
    return this.#first.length;
  }

  get settling(): number {
    return this.#count.settling;
  }

  /** A suspect is buffered too, but leaves the buffer only through its trial: `takeBuffered` does not give it. */
  add(lease: Lease): ActiveJob {
    const job = new ActiveJob(lease);
    job.index = this.#all.length;
    this.#all.push(job);
    this.#count.buffered++;
    const { lane } = lease.job;
    if (lane !== 'suspect') this.#listFor(lease.job).push(job);
    return job;
  }

  /** Up to `count` buffered jobs that are wanted. The caller moves each of them on at once. */
  takeBuffered(count: number, isWanted: (job: ActiveJob) => boolean = () => true): ActiveJob[] {
    const taken: ActiveJob[] = [];
    for (const list of [this.#first, this.#fresh, this.#others]) {
      if (taken.length < count) taken.push(...takeFrom(list, count - taken.length, isWanted));
    }
    return taken;
  }

  /** The buffered jobs of a resource that its gate has not admitted one by one. */
  takeBufferedOf(resource: string): ActiveJob[] {
    return this.takeBuffered(this.buffered, (job) => job.behind === resource);
  }

  runs(job: ActiveJob): void {
    this.#move(job, 'running');
  }

  /** @param now by the worker's own clock */
  settles(job: ActiveJob, now: number): void {
    this.#move(job, 'settling');
    job.settlingSince = now;
  }

  isGone(job: ActiveJob): void {
    this.#move(job, 'gone');
    const last = this.#all.pop() as ActiveJob;
    if (last !== job) {
      this.#all[job.index] = last;
      last.index = job.index;
    }
    if (this.#all.length > 0) return;
    for (const resolve of this.#onEmpty.splice(0)) resolve();
  }

  /** A copy, so that jobs may come and go meanwhile. */
  list(): ActiveJob[] {
    return [...this.#all];
  }

  listRunning(): ActiveJob[] {
    return this.#all.filter(({ state }) => state === 'running');
  }

  whenEmpty(): Promise<void> {
    if (this.#all.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onEmpty.push(resolve));
  }

  #listFor(job: ClaimedJob): ActiveJob[] {
    if (this.#goesFirst(job)) return this.#first;
    return job.lane === 'fresh' ? this.#fresh : this.#others;
  }

  #move(job: ActiveJob, to: keyof typeof previousStates): void {
    const previous: readonly ActiveJob['state'][] = previousStates[to];
    if (!previous.includes(job.state)) throw new TypeError(`a job that is ${job.state} cannot become ${to}`);
    this.#count[job.state]--;
    this.#count[to]++;
    job.state = to;
  }
}

function takeFrom(list: ActiveJob[], count: number, isWanted: (job: ActiveJob) => boolean): ActiveJob[] {
  if (list.slice(0, count).every(isWanted)) return list.splice(0, count);
  const taken: ActiveJob[] = [];
  const kept = list.filter((job) => {
    const isTaken = taken.length < count && isWanted(job);
    if (isTaken) taken.push(job);
    return !isTaken;
  });
  list.splice(0, list.length, ...kept);
  return taken;
}
