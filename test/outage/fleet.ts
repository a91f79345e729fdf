import type { Clock } from '../../src/clock.ts';
import { defineJob, type JobDefinition, Mulligan, type RetryOptions } from '../../src/index.ts';
import { DEFAULT_PRIORITY } from '../../src/job.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import type { Store } from '../../src/store/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import type { Worker } from '../../src/worker/worker.ts';
import type { Answer, Dependency } from '../gate/dependency.ts';
import { sharedStore } from './shared-store.ts';

/*
 * Real workers on a real store (the model in memory) and a virtual clock, against a toy dependency. Each worker has a
 * Mulligan of its own, as processes have; the dependency is told which of them calls.
 */

export interface FleetOptions {
  readonly dependency: Dependency;
  /** False: no gate at all. Undefined: nothing is named, so the job's name is a soft gate. */
  readonly resource?: string | false | ((n: number) => [string, string]) | undefined;
  readonly workers?: number;
  readonly concurrency?: number;
  readonly clock?: VirtualClock;
  readonly retry?: RetryOptions;
}

export class Fleet {
  readonly clock: VirtualClock;
  readonly store: Store;
  readonly start: number;
  readonly workers: Worker[] = [];
  readonly mulligans: Mulligan[] = [];
  /** Per second of virtual time. */
  readonly calls: number[] = [];
  readonly failed: number[] = [];
  readonly done: number[] = [];
  readonly changes: string[] = [];
  readonly waits: { readonly input: number; readonly waitedMs: number }[] = [];
  /** From this second on a call never ends, as when its process is killed. */
  hangsFrom: number | null = null;
  hung = 0;
  /** By how much the wall clock of each worker is wrong. */
  readonly wallAheadMs: number[] = [];
  dead = 0;
  completed = 0;
  enqueued = 0;
  #next = 0;
  mostAttempts = 0;
  mostRuns = 0;
  readonly #options: FleetOptions;
  readonly #job: JobDefinition<number>;

  private constructor(options: FleetOptions) {
    this.#options = options;
    this.clock = options.clock ?? new VirtualClock();
    this.start = this.clock.now();
    this.store = new MemoryStore({ clock: this.clock });
    this.#job = this.#definition(0);
  }

  static async open(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options);
    for (let index = 0; index < (options.workers ?? 3); index++) await fleet.#addWorker(index);
    return fleet;
  }

  get second(): number {
    return Math.floor((this.clock.now() - this.start) / 1_000);
  }

  async enqueue(count: number): Promise<void> {
    this.enqueued += count;
    await this.mulligan.enqueueMany(
      this.#job,
      Array.from({ length: count }, () => this.#next++).map((input) => ({ input })),
    );
  }

  get mulligan(): Mulligan {
    return this.mulligans[0] as Mulligan;
  }

  /** Seconds of virtual time; `perSecond` new jobs arrive in each. */
  async run(seconds: number, perSecond = 0): Promise<void> {
    const until = this.second + seconds;
    let owed = 0;
    while (this.second < until) {
      owed += perSecond / 10;
      if (owed >= 1) await this.enqueue(Math.floor(owed));
      owed -= Math.floor(owed);
      await this.clock.advance(100);
    }
  }

  /** Without arrivals, in steps of a second. */
  async wait(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) await this.clock.advance(1_000);
  }

  async runUntilDone(longestSeconds: number, perSecond = 0): Promise<number> {
    const from = this.second;
    while (this.completed + this.dead < this.enqueued && this.second - from < longestSeconds)
      await this.run(1, perSecond);
    return this.second - from;
  }

  async gate(): Promise<Awaited<ReturnType<Store['gates']>>[number] | undefined> {
    return (await this.store.gates({ kind: 'resource', limit: 1 }))[0];
  }

  async close(): Promise<void> {
    const stopping = this.mulligans.map((mulligan) => mulligan.close({ grace: 0 }));
    for (let i = 0; i < 20; i++) await this.clock.advance(1_000);
    await Promise.all(stopping);
  }

  async #addWorker(index: number): Promise<void> {
    const { store } = this;
    const clock = this.#clockOf(index);
    const job = this.#definition(index);
    const mulligan = await Mulligan.open(sharedStore(store), { clock, jobs: [job], log: () => {} });
    mulligan.on('completed', ({ attempt, run }) => {
      this.completed++;
      this.done[this.second] = (this.done[this.second] ?? 0) + 1;
      this.mostAttempts = Math.max(this.mostAttempts, attempt);
      this.mostRuns = Math.max(this.mostRuns, run);
    });
    mulligan.on('dead', () => void this.dead++);
    mulligan.on('gate', ({ gate, change, rule }) => this.changes.push(`${gate.kind} ${gate.name} ${change}: ${rule}`));
    this.mulligans.push(mulligan);
    this.workers.push(mulligan.work({ concurrency: this.#options.concurrency ?? 20, lease: '30s', name: `w${index}` }));
  }

  /** The store has the right time; a worker may have another. */
  #clockOf(index: number): Clock {
    const { clock } = this;
    return {
      now: () => clock.now() + (this.wallAheadMs[index] ?? 0),
      monotonic: () => clock.monotonic(),
      random: () => clock.random(),
      newId: () => clock.newId(),
      after: (delayMs, action) => clock.after(delayMs, action),
    };
  }

  #definition(worker: number): JobDefinition<number> {
    const { resource, dependency, retry } = this.#options;
    return defineJob<number>({
      name: 'call',
      priority: DEFAULT_PRIORITY,
      ...(resource === undefined ? {} : { resource }),
      ...(retry === undefined ? {} : { retry }),
      run: async (n, { job }) => {
        const { second } = this;
        this.waits.push({ input: n, waitedMs: this.clock.now() - job.enqueuedAt.getTime() });
        this.calls[second] = (this.calls[second] ?? 0) + 1;
        if (this.hangsFrom !== null && second >= this.hangsFrom) {
          this.hung++;
          await new Promise(() => {});
        }
        const answer = dependency.call(this.clock.now(), worker, job.id, n);
        await new Promise<void>((resolve) => this.clock.after(answer.durationMs, resolve));
        if (answer.kind === 'ok') return;
        this.failed[second] = (this.failed[second] ?? 0) + 1;
        throw errorOf(answer);
      },
    });
  }
}

function errorOf({ kind, retryAfterMs }: Answer): Error {
  if (kind === 'bug') return new Error('undefined is not a function');
  if (kind === 'unavailable') return Object.assign(new Error('Service Unavailable'), { status: 503 });
  const error = new Error(kind === 'down' ? 'connect ECONNREFUSED' : 'too many requests');
  if (kind === 'down') return Object.assign(error, { code: 'ECONNREFUSED' });
  const headers = retryAfterMs === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterMs / 1_000)) };
  return Object.assign(error, { status: 429, headers });
}
