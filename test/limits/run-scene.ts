import type { Check, Violation } from '../../sim/checker/checker.ts';
import { checkCall } from '../../sim/checker/checker.ts';
import { Model } from '../../sim/checker/model.ts';
import { copy } from '../../sim/copy.ts';
import type { Engine, SimStore } from '../../sim/engines.ts';
import { Random } from '../../sim/random.ts';
import { Scheduler, SimProcess, START } from '../../sim/scheduler.ts';
import { changeRequest, crash, newJob, quota, settlement } from '../../src/store/conformance/builders.ts';
import type {
  ChangeAnswer,
  Claim,
  ClaimedJob,
  ClaimRequest,
  Enqueued,
  NewJob,
  SettleAnswer,
} from '../../src/store/store.ts';
import type { VerbName } from '../../src/store/verbs.ts';
import { BACKOFF_MS, type Ending, LEASE_MS, QUEUES, type Scene, type Step } from './steps.ts';

/** What a store did in a scene. */
export interface Played {
  /** For each step, what it took or changed, in an order that says nothing. */
  readonly taken: readonly string[];
  /** Promises that it broke, as the checker of the simulation sees them. */
  readonly violations: readonly Violation[];
}

/** With jobs that may be retried for as long as a scene lasts, and are suspects after their first crash. */
const policy: NewJob['policy'] = {
  maxAttempts: 1_000,
  backoff: { kind: 'fixed', baseMs: BACKOFF_MS },
  jitter: 'none',
  deadlineMs: null,
  maxCrashes: 2,
  maxRuns: 10_000,
};
const payload = JSON.stringify({ kind: 'unrecoverable', ms: 0, times: 1 });
const LAST_CRASH = 2 * policy.maxCrashes;
const changesGates: ReadonlySet<VerbName> = new Set<VerbName>(['claimGated', 'changeGate']);

/** Makes jobs for a scene, so that every store gets the same. */
export function jobsOf({ steps }: Scene): ReadonlyMap<Step, NewJob> {
  return new Map(
    steps.flatMap((step) => (step.do === 'enqueue' ? [[step, newJob({ ...step.job, policy, payload })]] : [])),
  );
}

export function playScene(engine: Engine, scene: Scene, jobs: ReadonlyMap<Step, NewJob>): Promise<Played> {
  return engine.run(async (open) => {
    const scheduler = new Scheduler(new Random(1));
    const machine = new SimProcess('store', scheduler);
    const store = await open(machine, () => true);
    const player = new Player(store, machine, jobs);
    try {
      await player.call('writeLimits', [
        scene.limits.map(({ name, settings }) => ({ limit: name, key: null, source: 'code', settings })),
      ]);
      const taken: string[] = [];
      for (const step of scene.steps) taken.push(await player.play(step));
      return { taken, violations: player.violations };
    } finally {
      await store.close();
    }
  });
}

class Player {
  readonly violations: Violation[] = [];
  readonly #store: SimStore;
  readonly #machine: SimProcess;
  readonly #jobs: ReadonlyMap<Step, NewJob>;
  readonly #model: Model = new Model();
  readonly #running: Map<string, ClaimedJob> = new Map();
  readonly #ids: string[] = [];
  #calls = 0;

  constructor(store: SimStore, machine: SimProcess, jobs: ReadonlyMap<Step, NewJob>) {
    this.#store = store;
    this.#machine = machine;
    this.#jobs = jobs;
  }

  /** Calls the store, and checks its answer. */
  async call(verb: VerbName, args: readonly unknown[]): Promise<unknown> {
    const { clock } = this.#machine;
    const verbOf = this.#store[verb] as (...args: unknown[]) => Promise<unknown>;
    const value = await verbOf.apply(this.#store, copy(args) as unknown[]);
    const now = clock.now();
    const at = now - START;
    const expect: Check['expect'] = (guarantee, holds, text) => {
      if (!holds) this.violations.push({ guarantee, at, text: `${verb}: ${text()}` });
    };
    const check = { model: this.#model, now, expect };
    checkCall(
      { at, from: at, kind: 'executed', call: ++this.#calls, process: 'worker-1', verb, args, value: copy(value) },
      check,
    );
    if (changesGates.has(verb)) this.#model.gates.read(await this.#store.gates({ limit: 100 }), check);
    return value;
  }

  async play(step: Step): Promise<string> {
    switch (step.do) {
      case 'enqueue': {
        const job = this.#jobs.get(step) as NewJob;
        const [{ id }] = (await this.call('enqueue', [[job]])) as [Enqueued];
        this.#ids.push(id);
        return id;
      }
      case 'advance':
        await this.#machine.scheduler.run(this.#machine.scheduler.now + step.ms);
        return '';
      case 'write':
        await this.call('writeLimits', [[step.write]]);
        return '';
      case 'claim':
      case 'claimLimited':
        return this.#claim(step.do, { ...this.#request(step.limit), queues: quotasOf(step.quota) });
      case 'claimGated': {
        const request = { ...this.#request(step.limit), queues: quotasOf(step.quota), resource: step.resource };
        return this.#claim(step.do, request);
      }
      case 'try':
        return this.#claim('claim', { ...this.#request(1), queues: [quota({ queue: step.queue, suspect: 1 })] });
      case 'settle':
        return this.#settle(pick(this.#sorted(), step.index), step.ending);
      case 'crash':
        return this.#crash();
      case 'cancel': {
        const id = pick(this.#ids, step.index);
        return id === undefined ? '' : JSON.stringify(await this.call('cancel', [[id]]));
      }
      case 'redrive':
        return this.#change('redrive', {});
      case 'runNow':
        return this.#change('runNow', { states: ['scheduled', 'retrying'] });
      case 'hold':
        await this.call('hold', [{ queue: step.queue }, null]);
        return '';
      case 'release':
        await this.call('release', [{ queue: step.queue }]);
        return '';
      case 'pin':
        await this.call('changeGate', [{ kind: 'resource', name: step.resource }, step.order, 'ann']);
        return '';
    }
  }

  #request(limit: number): Omit<ClaimRequest, 'queues'> {
    return { worker: 'worker-1', leaseMs: LEASE_MS, limit };
  }

  async #claim(verb: 'claim' | 'claimLimited' | 'claimGated', request: ClaimRequest): Promise<string> {
    const { jobs } = (await this.call(verb, [request])) as Pick<Claim, 'jobs'>;
    for (const job of jobs) this.#running.set(job.id, job);
    return namesOf(jobs.map(({ id, lane }) => `${id} ${lane}`));
  }

  #sorted(): ClaimedJob[] {
    return [...this.#running.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  async #settle(job: ClaimedJob | undefined, ending: Ending): Promise<string> {
    if (job === undefined) return '';
    const decision = decisionOf(job, ending);
    const [answer] = (await this.call('settle', [[settlement(job, decision)]])) as SettleAnswer[];
    this.#running.delete(job.id);
    return `${job.id} ${answer}`;
  }

  /** All that run have lost their leases. */
  async #crash(): Promise<string> {
    const { scheduler } = this.#machine;
    await scheduler.run(scheduler.now + LEASE_MS);
    const expired = (await this.call('expired', [100])) as ClaimedJob[];
    const settlements = expired.map((job) => {
      const crashes = job.crashes + 1;
      return crash(
        job,
        crashes >= LAST_CRASH
          ? { kind: 'dead', reason: 'poison', counted: true, rule: 'crashed' }
          : { kind: 'retry', why: 'crash', delayMs: BACKOFF_MS, lane: 'suspect', rule: 'crashed' },
      );
    });
    if (settlements.length > 0) await this.call('settle', [settlements]);
    for (const { id } of expired) this.#running.delete(id);
    return namesOf(expired.map(({ id }) => id));
  }

  async #change(action: 'redrive' | 'runNow', selection: object): Promise<string> {
    const { ids } = (await this.call('change', [changeRequest(action, selection)])) as ChangeAnswer;
    return namesOf(ids);
  }
}

function quotasOf(places: object): ClaimRequest['queues'] {
  return QUEUES.map((queue) => quota({ queue, share: 1, ...places }));
}

function decisionOf(job: ClaimedJob, ending: Ending): Parameters<typeof settlement>[1] {
  switch (ending) {
    case 'complete':
      return { kind: 'complete', rule: 'completed' };
    case 'retry': {
      const lane = job.crashes > 0 ? 'suspect' : 'retry';
      return { kind: 'retry', why: 'backoff', delayMs: BACKOFF_MS, lane, rule: 'default' };
    }
    case 'die':
      return { kind: 'dead', reason: 'unrecoverable', counted: true, rule: 'default' };
    default:
      return { kind: ending, delayMs: ending === 'snooze' ? 400 : 0, rule: ending };
  }
}

function pick<T>(items: readonly T[], index: number): T | undefined {
  return items.length === 0 ? undefined : items[index % items.length];
}

function namesOf(names: readonly string[]): string {
  return [...names].sort().join(', ');
}
