import type { EnqueueOptions } from '../src/enqueue-options.ts';
import type { KeyUntil } from '../src/job.ts';
import { Mulligan } from '../src/mulligan.ts';
import type { ChangeAction, ChangeRequest, HoldTarget, JobSelection, Store } from '../src/store/store.ts';
import { gateOrders } from '../src/store/store.ts';
import type { VerbName } from '../src/store/verbs.ts';
import type { OpenEngine } from './engines.ts';
import { type Ending, endings, type Faults, type SharedStore, storeFor } from './faulty-store.ts';
import { type FinalState, History } from './history.ts';
import { randomScript, simGates, simJobs, simPolicies } from './jobs.ts';
import { randomWrite } from './limits.ts';
import { Random } from './random.ts';
import type { Scenario } from './scenario.ts';
import { Scheduler, SimProcess } from './scheduler.ts';

/** How long a healed queue may take to end everything. */
const PATIENCE_MS = 3_600_000;
const QUEUES = ['default', 'second'] as const;
const HOLD_TARGETS: readonly HoldTarget[] = [
  ...QUEUES.map((queue) => ({ queue })),
  ...simGates.map((resource) => ({ resource })),
];

export interface Outcome {
  readonly history: History;
  readonly final: FinalState;
  /** False when jobs were still waiting or running after an hour of health. */
  readonly ended: boolean;
}

/** Where exactly one thing goes wrong, for exhaustive runs; in random ones chance decides. */
export interface Scripted {
  /** The ending of the n-th call of all workers, counted from 0. */
  readonly endingOf?: { readonly call: number; readonly ending: Ending };
  /** The caller of the n-th call dies before or after it. */
  readonly crashAt?: { readonly call: number; readonly when: 'before' | 'after' };
}

/** One simulated fleet: producers, workers that die and come back, operators, and a store that they all share. */
export class World implements Faults {
  readonly #scenario: Scenario;
  readonly #scripted: Scripted | null;
  readonly #random: Random;
  /** Draws which workers are of the deploy before. */
  readonly #deploys: Random;
  /** Draws how limits are changed, and when. */
  readonly #limitChanges: Random;
  /** Draws which jobs are throttled. */
  readonly #throttles: Random;
  readonly #old: Set<SimProcess> = new Set();
  readonly #scheduler: Scheduler;
  readonly #history: History = new History();
  readonly #machine: SimProcess;
  readonly #operator: SimProcess;
  readonly #workers: (SimProcess | null)[];
  #shared!: SharedStore;
  #healthy = false;
  #storeAwayUntil = 0;
  #diskFullUntil = 0;
  #workersStarted = 0;
  #workerCalls = 0;

  constructor(scenario: Scenario, scripted: Scripted | null = null) {
    this.#scenario = scenario;
    this.#scripted = scripted;
    this.#random = new Random(scenario.seed);
    this.#deploys = new Random(scenario.seed + 2_000_003);
    this.#limitChanges = new Random(scenario.seed + 4_000_037);
    this.#throttles = new Random(scenario.seed + 7_000_003);
    this.#scheduler = new Scheduler(this.#random);
    this.#machine = new SimProcess('store', this.#scheduler);
    this.#operator = new SimProcess('operator', this.#scheduler);
    this.#workers = Array.from({ length: scenario.workers }, () => null);
  }

  async run(open: OpenEngine): Promise<Outcome> {
    const engine = await open(this.#machine, () => this.#healthy);
    this.#shared = { engine, machine: this.#machine, history: this.#history, faults: this, calls: 0, inProgress: 0 };
    await this.#setLimits();
    await this.#startProducer();
    await this.#setSchedules();
    for (const index of this.#workers.keys()) this.#restart(index, this.#random.whole(0, 500));
    if (this.#scripted === null) this.#planTrouble();
    await this.#scheduler.run(this.#scenario.faultsForMs);
    const ended = await this.#heal();
    const final = await this.#final();
    await engine.close();
    return { history: this.#history, final, ended };
  }

  // Faults

  ending(process: SimProcess, verb: VerbName): Ending {
    if (this.#healthy || process === this.#operator) return 'answered';
    if (this.#scripted !== null) {
      const { endingOf } = this.#scripted;
      return isWorker(process) && endingOf?.call === this.#workerCalls ? endingOf.ending : 'answered';
    }
    const { now } = this.#scheduler;
    if (now < this.#storeAwayUntil) return this.#random.pick(endings.slice(2));
    if (now < this.#diskFullUntil && writesData.has(verb)) return 'refused';
    const { lost, refused, hangs } = this.#scenario.probability;
    const drawn = this.#random.next();
    if (drawn < lost) return 'answer-lost';
    if (drawn < lost + refused) return 'refused';
    return drawn < lost + refused + hangs ? 'hangs' : 'answered';
  }

  around(process: SimProcess, when: 'before' | 'after'): void {
    if (this.#healthy || !isWorker(process)) return;
    const call = when === 'before' ? this.#workerCalls++ : this.#workerCalls - 1;
    const crashes =
      this.#scripted === null
        ? this.#random.chance(this.#scenario.probability.crash / 2)
        : this.#scripted.crashAt?.when === when && this.#scripted.crashAt.call === call;
    if (crashes) this.#crash(process, `${when} a call`);
  }

  latencyMs(): number {
    return this.#healthy ? 1 : this.#random.next() * this.#scenario.slowestCallMs;
  }

  losesWakeUp(): boolean {
    return !this.#healthy && this.#random.chance(this.#scenario.probability.wakeUpLost);
  }

  // The fleet

  #note(text: string): void {
    this.#history.add({ at: this.#scheduler.now, kind: 'note', text });
  }

  #down(process: SimProcess): void {
    this.#history.add({ at: this.#scheduler.now, kind: 'down', process: process.name });
  }

  #restart(index: number, delayMs: number): void {
    this.#scheduler.plan(this.#operator, delayMs, () => void this.#startWorker(index));
  }

  async #startWorker(index: number): Promise<void> {
    if (this.#healthy || this.#workers[index]?.alive) return;
    const process = new SimProcess(`worker-${++this.#workersStarted}`, this.#scheduler);
    if (this.#scripted === null) process.skewMs = this.#random.whole(-300_000, 300_000);
    this.#workers[index] = process;
    if (this.#scenario.oldDeploy !== null && this.#deploys.chance(0.5)) this.#old.add(process);
    await this.#work(process);
    this.#supervise(process, index);
  }

  async #work(process: SimProcess): Promise<void> {
    const { leaseMs, concurrency, retryShare, maxRetriesInFlight } = this.#scenario;
    const mulligan = await this.#connect(process);
    mulligan.work({
      queues: { default: { weight: 3 }, second: {} },
      concurrency,
      lease: leaseMs,
      retryShare,
      poll: 500,
      name: process.name,
      ...(maxRetriesInFlight === null ? {} : { maxRetriesInFlight }),
    });
  }

  /** A killed process is started again, empty, after a while. */
  #supervise(process: SimProcess, index: number): void {
    this.#scheduler.plan(this.#operator, 250, () => {
      if (process.alive) this.#supervise(process, index);
      else this.#restart(index, this.#random.whole(0, 1_000));
    });
  }

  #connect(process: SimProcess): Promise<Mulligan> {
    return Mulligan.open(storeFor(process, this.#shared), {
      jobs: simJobs(process, this.#history, (dependency) => this.#isDown(dependency), {
        oldDeploy: this.#scenario.oldDeploy,
        limits: this.#scenario.limits,
        isOld: this.#old.has(process),
      }),
      clock: process.clock,
      log: () => {},
      retention: { completed: null, dead: null, cancelled: null },
    });
  }

  #crash(process: SimProcess, why: string): void {
    if (!process.alive) return;
    this.#note(`${process.name} crashed ${why}`);
    process.kill();
    this.#down(process);
  }

  /** Before any process opens: it would write what code says of limits, and faults would keep it from opening. */
  async #setLimits(): Promise<void> {
    const { limits } = this.#scenario.limits;
    if (limits.length === 0) return;
    const writes = limits.map(({ name, settings }) => ({ limit: name, key: null, source: 'code' as const, settings }));
    let isSet = false;
    void storeFor(this.#operator, this.#shared)
      .writeLimits(writes)
      .finally(() => {
        isSet = true;
      });
    while (!isSet) await this.#scheduler.run(this.#scheduler.now + 100);
  }

  async #startProducer(): Promise<void> {
    const producer = new SimProcess('producer', this.#scheduler);
    const mulligan = await this.#connect(producer);
    for (let n = 0; n < this.#scenario.jobs; n++) {
      const at = this.#scripted === null ? this.#random.next() * this.#scenario.faultsForMs * 0.7 : 0;
      this.#scheduler.plan(producer, at, () => this.#enqueue(mulligan));
    }
  }

  /** They fire every tick that is due, however late: so each has one job, or the simulation finds out. */
  async #setSchedules(): Promise<void> {
    for (const [index, { everyMs, overlap }] of this.#scenario.schedules.entries()) {
      const options = { every: everyMs, overlap, misfire: 'all', misfireLimit: 10_000 } as const;
      const script = { kind: 'complete', ms: this.#random.pick([0, 20, 300]), times: 1 };
      const { schedules } = await this.#connectOperator();
      let isSet = false;
      const set = schedules.set(`schedule-${index}`, 'steady', script, options).finally(() => {
        isSet = true;
      });
      // Nothing has gone wrong yet, but calls take their time.
      while (!isSet) await this.#scheduler.run(this.#scheduler.now + 100);
      await set;
    }
  }

  async #connectOperator(): Promise<Mulligan> {
    return this.#connect(this.#operator);
  }

  #enqueue(mulligan: Mulligan): void {
    const random = this.#random;
    const options = {
      ...(random.chance(0.2) ? { delay: random.whole(0, 5_000) } : {}),
      ...(random.chance(0.3) ? { priority: random.whole(0, 9) } : {}),
      ...(random.chance(0.2) ? { queue: random.pick(QUEUES) } : {}),
      ...(random.chance(0.3)
        ? { key: random.pick(['a', 'b']), ...this.#keyLife(random.pick(['started', 'finished', 'pruned'] as const)) }
        : {}),
    };
    const script = this.#scripted === null ? randomScript(random) : { kind: 'fail' as const, ms: 5, times: 1 };
    const names = this.#scenario.names ?? Object.keys(simPolicies);
    const name = this.#scripted === null ? random.pick(names) : 'steady';
    // The caller hears of an error; whether the job exists is then unknown, and the checker allows both.
    mulligan.enqueue(name, script, this.#scripted === null ? options : {}).catch(() => {});
  }

  #keyLife(keyUntil: KeyUntil): Pick<EnqueueOptions, 'keyUntil' | 'throttle'> {
    if (!this.#throttles.chance(this.#scenario.throttled)) return { keyUntil };
    return { throttle: this.#throttles.pick([500, 3_000, 20_000]) };
  }

  // Dependencies

  #isDown(dependency: string): boolean {
    const { now } = this.#scheduler;
    if (this.#healthy) return false;
    return this.#scenario.outages.some((one) => one.dependency === dependency && now >= one.from && now < one.to);
  }

  // Trouble

  /** Between now, when the schedules are set, and the end of the faults. */
  #planTrouble(): void {
    for (const { dependency, from } of this.#scenario.outages) {
      const down = { kind: 'dependency', resource: dependency, isDown: true } as const;
      const inMs = Math.max(0, from - this.#scheduler.now);
      this.#scheduler.plan(this.#operator, inMs, () => this.#history.add({ at: this.#scheduler.now, ...down }));
    }
    const { perSecond } = this.#scenario;
    const leftMs = this.#scenario.faultsForMs - this.#scheduler.now;
    const troubles: [number, () => void][] = [
      [perSecond.pause, () => this.#pause()],
      [perSecond.clockStep, () => this.#stepClock()],
      [perSecond.storeAway, () => (this.#storeAwayUntil = this.#scheduler.now + this.#random.whole(100, 8_000))],
      [perSecond.fullDisk, () => (this.#diskFullUntil = this.#scheduler.now + this.#random.whole(100, 8_000))],
      [perSecond.operator, () => this.#operate()],
    ];
    for (const [rate, action] of troubles) {
      const times = Math.floor((rate * leftMs) / 1_000 + this.#random.next());
      for (let n = 0; n < times; n++) this.#scheduler.plan(this.#operator, this.#random.next() * leftMs, action);
    }
    this.#planLimitChanges(leftMs);
  }

  #planLimitChanges(leftMs: number): void {
    const { limits } = this.#scenario;
    const random = this.#limitChanges;
    for (let left = Math.floor((limits.changesPerSecond * leftMs) / 1_000); left > 0; left--) {
      const write = randomWrite(limits, random);
      this.#scheduler.plan(this.#operator, random.next() * leftMs, () => {
        void storeFor(this.#operator, this.#shared).writeLimits([write]);
      });
    }
  }

  #living(): SimProcess[] {
    return this.#workers.filter((process) => process?.alive) as SimProcess[];
  }

  #pause(): void {
    const living = this.#living();
    if (living.length === 0) return;
    const process = this.#random.pick(living);
    process.pausedUntil = this.#scheduler.now + this.#random.whole(100, this.#scenario.leaseMs * 3);
    this.#note(`${process.name} is paused until ${process.pausedUntil}`);
    this.#down(process);
  }

  #stepClock(): void {
    const living = this.#living();
    if (living.length > 0) this.#random.pick(living).skewMs += this.#random.whole(-600_000, 600_000);
  }

  #operate(): void {
    const store = storeFor(this.#operator, this.#shared);
    const random = this.#random;
    const name = random.pick(Object.keys(simPolicies));
    const action = random.whole(0, this.#scenario.schedules.length > 0 ? 11 : 9);
    if (action === 0) void this.#cancelSomething();
    else if (action <= 2) void store.hold(random.pick(HOLD_TARGETS), this.#holdEnd());
    else if (action <= 4) void store.release(random.pick(HOLD_TARGETS));
    else if (action === 5) void store.change(this.#order('redrive', { name }));
    else if (action === 6) void store.change(this.#order('discard', { name, limit: 1 }));
    else if (action === 7) {
      const order = random.pick(['runNow', 'cancel'] as const);
      // Without a limit, jobs that run are among them.
      void store.change(this.#order(order, order === 'runNow' ? { name } : { name, limit: 3 }));
    } else if (action >= 10) void this.#operateSchedules();
    else {
      const gate = { kind: 'resource', name: random.pick(simGates) } as const;
      void store.changeGate(gate, random.pick(gateOrders), 'operator');
    }
  }

  async #operateSchedules(): Promise<void> {
    const { schedules } = await this.#connectOperator();
    const name = `schedule-${this.#random.whole(0, this.#scenario.schedules.length - 1)}`;
    const action = this.#random.pick(['pause', 'resume', 'resume', 'trigger'] as const);
    await schedules[action](name).catch(() => {});
  }

  #order(action: ChangeAction, selection: JobSelection): ChangeRequest {
    const id = this.#operator.clock.newId();
    const keepAttempts = this.#random.chance(0.5);
    return { id, action, selection, order: id, by: 'sim', part: 1_000, intervalMs: 0, keepAttempts, canary: 0 };
  }

  /** For good, or until a moment that may come while the hold is on its way. */
  #holdEnd(): number | null {
    return this.#random.chance(0.3) ? null : this.#machine.clock.now() + this.#random.whole(0, 5_000);
  }

  async #cancelSomething(): Promise<void> {
    const jobs = await this.#shared.engine.list({ limit: 10 });
    if (jobs.length > 0) await storeFor(this.#operator, this.#shared).cancel([this.#random.pick(jobs).id]);
  }

  /** Faults end, one worker stays (one that has been there, if any lives), and everything has to come to its end. */
  async #heal(): Promise<boolean> {
    this.#healthy = true;
    this.#history.healedAt = this.#scheduler.now;
    this.#note('healed');
    let last = this.#keepOne();
    // What operators asked for before may still be on its way.
    await this.#scheduler.run(this.#scheduler.now + this.#scenario.slowestCallMs);
    const store = storeFor(this.#operator, this.#shared);
    for (const target of HOLD_TARGETS) void store.release(target);
    for (const name of simGates) void store.changeGate({ kind: 'resource', name }, 'unpin', 'operator');
    for (let restarts = 0; restarts < 100; restarts++) {
      last = last?.alive ? last : await this.#startLast();
      if (await this.#endsWith(last)) return true;
      if (last.alive) return false;
    }
    return false;
  }

  #keepOne(): SimProcess | null {
    const living = this.#living();
    const isAwake = ({ pausedUntil }: SimProcess): boolean => pausedUntil <= this.#scheduler.now;
    const awake = living.filter((process) => isAwake(process) && !this.#old.has(process));
    const kept = awake.length > 0 ? this.#random.pick(awake) : null;
    for (const process of living) {
      if (process === kept) continue;
      process.kill();
      this.#down(process);
    }
    return kept;
  }

  async #startLast(): Promise<SimProcess> {
    const process = new SimProcess(`worker-${++this.#workersStarted}`, this.#scheduler);
    await this.#work(process);
    return process;
  }

  /** False when time ran out, or when this worker died: a job that kills its process does so in health as well. */
  async #endsWith(process: SimProcess): Promise<boolean> {
    const until = this.#scheduler.now + PATIENCE_MS;
    while (process.alive && this.#scheduler.now < until) {
      await this.#scheduler.run(this.#scheduler.now + 1_000, () => !process.alive);
      if (await this.#hasEnded()) return true;
    }
    return false;
  }

  async #hasEnded(): Promise<boolean> {
    if (this.#shared.inProgress > 0 || !(await this.#haveSchedulesEnded())) return false;
    const { rows } = await this.#shared.engine.stats();
    return rows.every(({ states }) => states.ready + states.running + states.scheduled + states.retrying === 0);
  }

  /** Once a schedule has caught up, it is paused. */
  async #haveSchedulesEnded(): Promise<boolean> {
    const store = storeFor(this.#operator, this.#shared);
    const { now, schedules } = await this.#shared.engine.schedules({ soonest: true, limit: 10 });
    for (const schedule of schedules) {
      const { name, version, nextAt } = schedule;
      if ((nextAt as number) <= now) continue;
      const to = { ...schedule, version: this.#machine.clock.newId(), paused: true, nextAt: null };
      // Not awaited: nothing happens before the scheduler goes on. When a tick comes first, this is done again.
      void store.writeSchedule({ name, from: version, to, jobs: [] });
    }
    return schedules.length === 0;
  }

  async #final(): Promise<FinalState> {
    const { engine } = this.#shared;
    const jobs = await engine.list({ limit: 10_000 });
    const ledgers = new Map<string, Awaited<ReturnType<Store['runs']>>>();
    for (const job of jobs) ledgers.set(job.id, await engine.runs(job.id));
    return { jobs, ledgers, errorGroups: await engine.errorGroups({ limit: 10_000 }) };
  }
}

const writesData: ReadonlySet<VerbName> = new Set<VerbName>([
  'enqueue',
  'claim',
  'claimLimited',
  'settle',
  'heartbeat',
  'remember',
]);

function isWorker(process: SimProcess): boolean {
  return process.name.startsWith('worker');
}
