import { describe, expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import { Mulligan } from '../mulligan.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { ClaimRequest, Heartbeat, QueueQuota, Store } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { WorkOptions } from './options.ts';
import { rescue } from './rescue.ts';
import type { Worker } from './worker.ts';

const soon = { backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' } as const;

/** A simulated fleet on one store. Each process serves the default queue and one that no other serves, and can be killed. */
class Fleet {
  readonly clock: VirtualClock = new VirtualClock();
  readonly store: MemoryStore = new MemoryStore({ clock: this.clock });
  /** What happened, in order: `start NAME`, and `alone true` or `alone false` where a heartbeat said so. */
  readonly log: string[] = [];
  /** Whether the store tells processes of new work; a store need not. */
  tellsOfWork = true;
  /** How long the answers to claims take. */
  claimTakesMs: (request: ClaimRequest) => number = () => 0;
  readonly starts: { readonly job: string; readonly process: number; readonly at: number }[] = [];
  readonly ended: string[] = [];
  readonly workers: Worker[] = [];
  #options: WorkOptions = {};
  #mulligans: Mulligan[] = [];
  #running: string[][] = [];
  #kills: (() => void)[] = [];

  async start(processes: number, options: WorkOptions): Promise<void> {
    this.#options = options;
    for (let index = 0; index < processes; index++) await this.#startProcess();
  }

  get mulligan(): Mulligan {
    return this.#mulligans.at(-1) as Mulligan;
  }

  /** What runs in each process. */
  get running(): readonly (readonly string[])[] {
    return this.#running;
  }

  get suspectsRunning(): number {
    return this.#running.flat().filter((name) => name === 'suspect').length;
  }

  startsOf(job: string) {
    return this.starts.filter((start) => start.job === job);
  }

  /** Jobs whose process died once, so that their next crash may bury them. */
  async makeSuspects(count: number, ms: number): Promise<void> {
    const client = await Mulligan.open(this.store, { clock: this.clock, log: () => {} });
    const suspect = defineJob<number>({
      name: 'suspect',
      queue: 'crashing',
      retryQueue: 'default',
      retry: { ...soon, maxCrashes: 2 },
      run: () => {},
    });
    await client.enqueueMany(
      suspect,
      Array(count)
        .fill(ms)
        .map((input) => ({ input })),
    );
    const quota: QueueQuota = {
      queue: 'crashing',
      share: count,
      retry: 0,
      redrive: 0,
      suspect: 0,
      maxRetriesInFlight: null,
    };
    await this.store.claim({ worker: 'victim', leaseMs: 1_000, limit: count, queues: [quota] });
    await this.clock.advance(1_000);
    await rescue(this.store, this.clock, () => {});
  }

  async #startProcess(): Promise<void> {
    const index = this.#running.length;
    const { clock, store } = this;
    let isDead = false;
    const running: string[] = [];
    const never = new Promise<never>(() => {});
    this.#kills.push(() => {
      isDead = true;
      running.length = 0;
    });
    /** What a dead process does reaches no one. */
    const lifeline = new Proxy(store, {
      get: (target, verb) => {
        const value = Reflect.get(target, verb);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (verb === 'onWork') return store.onWork(() => isDead || !this.tellsOfWork || (args[0] as () => void)());
          if (isDead) return never;
          if (verb === 'heartbeat') this.#logHeartbeats(args[0] as Heartbeat[]);
          const answer = value.apply(target, args);
          return verb === 'claim' ? this.#delay(answer, this.claimTakesMs(args[0] as ClaimRequest)) : answer;
        };
      },
    }) as Store;
    const run = async (name: string, ms: number): Promise<void> => {
      if (isDead) return never;
      running.push(name);
      this.log.push(`start ${name}`);
      this.starts.push({ job: name, process: index, at: clock.monotonic() });
      await new Promise<void>((resolve) => clock.after(ms, resolve));
      if (isDead) return never;
      running.splice(running.indexOf(name), 1);
      this.ended.push(name);
    };
    const jobs = [
      defineJob<number>({ name: 'suspect', retry: soon, run: (ms) => run('suspect', ms) }),
      defineJob<number>({ name: 'work', retry: soon, run: (ms) => run('work', ms) }),
      defineJob<number>({ name: 'long', retry: soon, run: (ms) => run('long', ms) }),
      defineJob<number>({
        name: 'killer',
        retry: { ...soon, maxAttempts: 100 },
        run: async (ms) => {
          await run('killer', ms);
          this.kill(index);
          return never;
        },
      }),
      defineJob<number>({
        name: 'fails-once',
        retry: soon,
        run: async (ms, { attempt }) => {
          await run('fails-once', ms);
          if (attempt === 1) throw new Error('again');
        },
      }),
    ];
    const mulligan = await Mulligan.open(lifeline, { jobs, clock, log: () => {} });
    this.#running.push(running);
    this.#mulligans.push(mulligan);
    this.workers.push(mulligan.work({ queues: ['default', `process-${index}`], ...this.#options }));
  }

  async #delay<Answer>(answer: Promise<Answer>, ms: number): Promise<Answer> {
    if (ms > 0) await new Promise<void>((resolve) => this.clock.after(ms, resolve));
    return answer;
  }

  #logHeartbeats(heartbeats: readonly Heartbeat[]): void {
    for (const { alone } of heartbeats) if (alone !== undefined) this.log.push(`alone ${alone}`);
  }

  /** SIGKILL; another process starts a moment later. */
  kill(index: number): void {
    this.#kills[index]?.();
    this.clock.after(100, () => void this.#startProcess());
  }
}

/** Moves on in steps and looks after each. */
async function watch(fleet: Fleet, ms: number, look: () => void): Promise<void> {
  const stepMs = 50;
  for (let passed = 0; passed < ms; passed += stepMs) {
    await fleet.clock.advance(stepMs);
    look();
  }
}

describe('50 innocent suspects of one queue, beside steady work of 3 processes', () => {
  it('cost the fleet no more than one worker while they are tried, one at a time', async () => {
    const fleet = new Fleet();
    await fleet.start(3, { concurrency: 50, lease: '30s' });
    const lengths = Array.from({ length: 12_000 }, (_, n) => 800 + ((n * 37) % 400));
    await fleet.mulligan.enqueueMany(
      'work',
      lengths.map((input) => ({ input })),
    );
    await fleet.clock.advance(5_000);
    await fleet.makeSuspects(50, 1_000);
    const before = fleet.ended.filter((name) => name === 'work').length;
    let mostSuspects = 0;
    let fewestBusy = 3;
    await watch(fleet, 40_000, () => {
      mostSuspects = Math.max(mostSuspects, fleet.suspectsRunning);
      fewestBusy = Math.min(fewestBusy, fleet.running.filter(({ length }) => length >= 45).length);
    });
    const worked = fleet.ended.filter((name) => name === 'work').length - before;
    // Three workers of 50 places end 150 jobs of a second per second.
    expect(worked / (40 * 150)).toBeGreaterThan(0.64);
    expect(mostSuspects).toBe(1);
    expect(fewestBusy).toBe(2);
    await fleet.clock.advance(30_000);
    expect(fleet.ended.filter((name) => name === 'suspect')).toHaveLength(50);
  });
});

describe('a very long job in each process', () => {
  it('keeps no suspect waiting for more than a third of a lease, and the other workers work on', async () => {
    const fleet = new Fleet();
    await fleet.start(3, { concurrency: 50, lease: '30s' });
    for (const index of fleet.running.keys()) {
      await fleet.mulligan.enqueue('long', 600_000, { queue: `process-${index}` });
    }
    await fleet.clock.advance(0);
    expect(fleet.running).toEqual([['long'], ['long'], ['long']]);
    await fleet.mulligan.enqueueMany(
      'work',
      Array(12_000)
        .fill(1_000)
        .map((input) => ({ input })),
    );
    await fleet.makeSuspects(10, 10);
    const leasedAt = fleet.clock.monotonic() + 1_000;
    const before = fleet.ended.length;
    let fewestBusy = 3;
    await watch(fleet, 45_000, () => {
      fewestBusy = Math.min(fewestBusy, fleet.running.filter(({ length }) => length >= 45).length);
    });
    const suspects = fleet.startsOf('suspect').map(({ at }) => at);
    expect(suspects).toHaveLength(10);
    expect((suspects[0] as number) - leasedAt).toBeLessThanOrEqual(10_000 + 2_000);
    // At most one wait for the long job of each process.
    expect((suspects[9] as number) - leasedAt).toBeLessThanOrEqual(3 * 10_000 + 2_000);
    expect(fewestBusy).toBe(2);
    expect((fleet.ended.length - before) / (45 * 150)).toBeGreaterThan(0.64);
  });
});

describe('one killer among healthy jobs that are longer than a lease', () => {
  /** Half an hour of a fleet with some jobs of two minutes and a killer. */
  async function halfAnHour(processes: number, longJobs: number, killersQueue = 'default') {
    const fleet = new Fleet();
    await fleet.start(processes, { queues: ['default', 'other'], concurrency: 5, lease: '6s', poll: '5s' });
    await fleet.mulligan.enqueue('long', 120_000);
    const { id } = await fleet.mulligan.enqueue('killer', 500, { queue: killersQueue });
    await fleet.mulligan.enqueueMany(
      'long',
      Array(longJobs - 1)
        .fill(120_000)
        .map((input) => ({ input })),
    );
    let mostSuspects = 0;
    for (let minute = 0; minute < 30; minute++) {
      await fleet.clock.advance(60_000);
      const running = await fleet.store.list({ state: 'running', limit: 100 });
      mostSuspects = Math.max(mostSuspects, running.filter(({ lane }) => lane === 'suspect').length);
    }
    return { fleet, mostSuspects, killer: await fleet.mulligan.jobs.get(id) };
  }

  it.each([1, 2, 3])('is buried, and none of them, whatever ran beside it (%i processes)', async (processes) => {
    const { fleet, mostSuspects, killer } = await halfAnHour(processes, 10);
    expect(killer).toMatchObject({ state: 'dead', deadReason: 'poison' });
    expect(killer?.crashes).toBeGreaterThanOrEqual(3);
    expect(killer?.crashes).toBeLessThanOrEqual(6);
    expect((await fleet.mulligan.stats()).states).toMatchObject({ completed: 10, dead: 1 });
    expect(mostSuspects).toBe(1);
  });

  it('is buried, and not the one beside it, when it is of another queue that the same process serves', async () => {
    const { fleet, killer } = await halfAnHour(1, 1, 'other');
    expect(killer).toMatchObject({ state: 'dead', deadReason: 'poison' });
    expect((await fleet.mulligan.stats()).states).toMatchObject({ completed: 1, dead: 1 });
  });
});

describe('the trial of a suspect', () => {
  it('waits for the jobs that run, starts none beside it, and ends with the suspect', async () => {
    const fleet = new Fleet();
    await fleet.makeSuspects(1, 1_000);
    await fleet.start(1, { concurrency: 10, lease: '30s' });
    await fleet.mulligan.enqueueMany(
      'work',
      Array(40)
        .fill(2_000)
        .map((input) => ({ input })),
    );
    let beside = 0;
    await watch(fleet, 20_000, () => {
      if (fleet.suspectsRunning > 0) beside = Math.max(beside, fleet.running.flat().length);
    });
    expect(beside).toBe(1);
    expect(fleet.log.filter((event) => event !== 'start work')).toEqual(['alone true', 'start suspect']);
    const [start] = fleet.startsOf('suspect');
    const next = fleet.startsOf('work').find(({ at }) => at >= (start?.at as number));
    expect((next?.at as number) - (start?.at as number)).toBe(1_000);
    expect(fleet.ended).toHaveLength(41);
  });

  it('hands back, uncounted, what its worker had claimed ahead, so that others can take it', async () => {
    const fleet = new Fleet();
    await fleet.start(1, { concurrency: 2, lease: '30s' });
    // Short runs make the worker claim ahead.
    await fleet.mulligan.enqueueMany(
      'work',
      Array(100)
        .fill(1)
        .map((input) => ({ input })),
    );
    await fleet.clock.advance(1_000);
    await fleet.mulligan.enqueueMany(
      'work',
      Array(10)
        .fill(5_000)
        .map((input) => ({ input })),
    );
    const suspects = fleet.makeSuspects(1, 10);
    await suspects;
    await fleet.clock.advance(6_000);
    const { totals, states } = await fleet.mulligan.stats();
    expect(totals.runs.released).toBeGreaterThan(0);
    expect(states.running).toBeLessThanOrEqual(3);
    await fleet.clock.advance(60_000);
    const all = await fleet.mulligan.jobs.list({ name: 'work', limit: 200 });
    expect(new Set(all.map(({ state, attempts }) => `${state} ${attempts}`))).toEqual(new Set(['completed 1']));
  });

  it('says that the suspect is no longer alone before anything else starts, once it has run for a lease', async () => {
    const fleet = new Fleet();
    await fleet.makeSuspects(1, 60_000);
    await fleet.start(1, { concurrency: 2, lease: '6s' });
    await fleet.clock.advance(1_100);
    expect(fleet.suspectsRunning).toBe(1);
    await fleet.mulligan.enqueue('work', 100);
    await fleet.clock.advance(5_800);
    expect(fleet.log).toEqual(['alone true', 'start suspect']);
    await fleet.clock.advance(400);
    expect(fleet.log).toEqual(['alone true', 'start suspect', 'alone false', 'start work']);
    expect(fleet.suspectsRunning).toBe(1);
  });

  it('leaves the suspect alone after a lease, too, while there is nothing else to start', async () => {
    const fleet = new Fleet();
    await fleet.makeSuspects(1, 60_000);
    await fleet.start(1, { concurrency: 2, lease: '6s' });
    await fleet.clock.advance(30_000);
    expect(fleet.suspectsRunning).toBe(1);
    expect(fleet.log).toEqual(['alone true', 'start suspect']);
    await fleet.mulligan.enqueue('work', 100);
    await fleet.clock.advance(1_000);
    expect(fleet.log).toEqual(['alone true', 'start suspect', 'alone false', 'start work']);
    expect(fleet.suspectsRunning).toBe(1);
  });

  it('says nothing of a suspect that starts beside a long job', async () => {
    const fleet = new Fleet();
    await fleet.start(1, { concurrency: 2, lease: '6s' });
    await fleet.mulligan.enqueue('long', 120_000);
    await fleet.makeSuspects(1, 1_000);
    await fleet.clock.advance(2_900);
    expect(fleet.suspectsRunning).toBe(0);
    await fleet.clock.advance(200);
    expect(fleet.suspectsRunning).toBe(1);
    await fleet.clock.advance(10_000);
    expect(fleet.log).toEqual(['start long', 'start suspect']);
    expect(fleet.ended).toEqual(['suspect']);
  });

  it('waits for a place when long jobs take them all, and never runs more than may', async () => {
    const fleet = new Fleet();
    await fleet.start(1, { concurrency: 2, lease: '3s' });
    await fleet.makeSuspects(1, 1_000);
    await fleet.mulligan.enqueueMany(
      'long',
      Array(6)
        .fill(20_000)
        .map((input) => ({ input })),
    );
    let most = 0;
    await watch(fleet, 100_000, () => {
      most = Math.max(most, fleet.running.flat().length);
    });
    expect(most).toBe(2);
    expect(fleet.ended).toHaveLength(7);
    expect(fleet.ended.indexOf('suspect')).toBeLessThan(5);
  });

  it('hands the suspect back, uncounted, when its worker stops before it starts', async () => {
    const fleet = new Fleet();
    await fleet.start(1, { concurrency: 2, lease: '30s' });
    await fleet.mulligan.enqueue('work', 5_000);
    await fleet.makeSuspects(1, 1_000);
    await fleet.clock.advance(2_000);
    const [job] = await fleet.mulligan.jobs.list({ name: 'suspect' });
    expect(job).toMatchObject({ state: 'running' });
    const stopped = fleet.workers[0]?.stop();
    await fleet.clock.advance(10_000);
    await stopped;
    expect(await fleet.store.get([job?.id as string])).toMatchObject([
      { state: 'ready', lane: 'suspect', attempts: 1 },
    ]);
  });

  it('is not disturbed by the late answer to an earlier claim: its jobs are handed back, uncounted', async () => {
    const fleet = new Fleet();
    await fleet.start(1, { concurrency: 2, lease: '30s', poll: '1h' });
    await fleet.makeSuspects(1, 10_000);
    fleet.claimTakesMs = () => 20_000;
    const { id } = await fleet.mulligan.enqueue('work', 1_000);
    await fleet.clock.advance(1);
    fleet.claimTakesMs = () => 0;
    expect(await fleet.mulligan.jobs.get(id)).toMatchObject({ state: 'running' });
    // The claim counts as failed after 15 s.
    await fleet.clock.advance(18_000);
    expect(fleet.running.flat()).toEqual(['suspect']);
    await fleet.clock.advance(2_100);
    expect(fleet.running.flat()).toEqual(['suspect']);
    expect(await fleet.mulligan.jobs.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
    await fleet.clock.advance(10_000);
    expect(fleet.ended).toEqual(['suspect', 'work']);
  });

  it('is given up when the suspect comes with a late answer: it goes back, uncounted, and is claimed again', async () => {
    const fleet = new Fleet();
    await fleet.makeSuspects(1, 1_000);
    await fleet.start(1, { concurrency: 2, lease: '30s' });
    fleet.claimTakesMs = ({ queues }) => (queues[0]?.suspect === 1 ? 20_000 : 0);
    await fleet.clock.advance(2_000);
    fleet.claimTakesMs = () => 0;
    const [job] = await fleet.mulligan.jobs.list({ name: 'suspect' });
    expect(job).toMatchObject({ state: 'running' });
    await fleet.clock.advance(30_000);
    expect(fleet.log).toEqual(['alone true', 'start suspect']);
    expect((await fleet.mulligan.jobs.runs(job?.id as string)).map(({ outcome }) => outcome)).toEqual([
      'crashed',
      'released',
      'completed',
    ]);
  });

  it('never says alone where two workers share a process', async () => {
    const fleet = new Fleet();
    await fleet.makeSuspects(1, 1_000);
    await fleet.start(1, { concurrency: 2, lease: '6s' });
    fleet.mulligan.work({ queues: ['elsewhere'] });
    await fleet.clock.advance(5_000);
    expect(fleet.ended).toEqual(['suspect']);
    expect(fleet.log).toEqual(['start suspect']);
  });
});

describe('a suspect behind a full maxRetriesInFlight', () => {
  it('is taken as soon as one retry ends, and starts within a third of a lease', async () => {
    const fleet = new Fleet();
    await fleet.start(2, { concurrency: 10, maxRetriesInFlight: 3, lease: '6s', poll: '1h' });
    await fleet.mulligan.enqueueMany(
      'fails-once',
      Array(30)
        .fill(5_000)
        .map((input) => ({ input })),
    );
    await fleet.clock.advance(20_000);
    expect(fleet.running.flat()).toEqual(Array(3).fill('fails-once'));
    fleet.tellsOfWork = false;
    await fleet.makeSuspects(1, 100);
    const dueAt = fleet.clock.monotonic() + 1_000;
    await fleet.clock.advance(15_000);
    const [start] = fleet.startsOf('suspect');
    expect((start?.at as number) - dueAt).toBeLessThanOrEqual(5_000 + 2_000);
    expect(fleet.ended).toContain('suspect');
  });
});
