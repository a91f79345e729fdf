import { defineJob } from '../src/definition.ts';
import type { EnqueueOptions } from '../src/enqueue-options.ts';
import type { LimitOptions } from '../src/limit/options.ts';
import { Mulligan } from '../src/mulligan.ts';
import type { WorkOptions } from '../src/worker/options.ts';
import type { Engine } from './engines.ts';
import { Random } from './random.ts';
import { Scheduler, SimProcess } from './scheduler.ts';

/*
 * One healthy worker and jobs of several kinds at once: plain ones, some behind limits, some with keys that strangers choose.
 * The starts of handlers are counted, because promises about who comes first are about those: claims that are each right for
 * their own kind may be wrong together. Nothing fails but what the mixture says, and all time is virtual.
 */

/** The jobs of one name. */
export interface Flow {
  readonly name: string;
  /** How long each runs. */
  readonly ms: number;
  /** So many wait at any time: a standing backlog. */
  readonly standing?: number;
  /** So many are enqueued per second. */
  readonly perSecond?: number;
  /** Its input is one of so many numbers, as strangers choose them. */
  readonly keys?: number;
  /** Its jobs depend on something of their own per input. */
  readonly hasResource?: boolean;
  readonly limit?: LimitOptions<number>;
  /** All fail, and are due again at once. */
  readonly fails?: boolean;
  readonly options?: EnqueueOptions;
}

export interface Mixture {
  readonly seed?: number;
  /** How long starts are counted, and from when on. */
  readonly seconds: number;
  readonly fromSecond?: number;
  readonly work: WorkOptions;
  readonly flows: readonly Flow[];
}

/** How often backlogs are filled up. */
const FILL_MS = 20;
const A_LOT_OF_ATTEMPTS = 1_000_000;

/** The names of the handlers in the order in which they started. */
export function startsOf(mixture: Mixture, engine: Engine): Promise<string[]> {
  return engine.run(async (open) => {
    const scheduler = new Scheduler(new Random(mixture.seed ?? 1));
    const machine = new SimProcess('store', scheduler);
    const process = new SimProcess('worker', scheduler);
    const starts: string[] = [];
    const jobs = mixture.flows.map((flow) =>
      defineJob<number>({
        name: flow.name,
        retry: { maxAttempts: A_LOT_OF_ATTEMPTS, backoff: { kind: 'fixed', base: 1 }, jitter: 'none' },
        resource: flow.hasResource ? (key) => `host-${key}` : false,
        ...(flow.limit && { limit: flow.limit }),
        async run() {
          starts.push(flow.name);
          await new Promise<void>((resolve) => process.clock.after(flow.ms, resolve));
          // By the fault of the job, so that no gate has a say.
          if (flow.fails) throw new TypeError('no');
        },
      }),
    );
    const store = await open(machine, () => true);
    const mulligan = await Mulligan.open(store, { jobs, clock: process.clock, log: () => {} });
    const fill = new Filling(mixture.flows, mulligan, process);
    await finished(scheduler, fill.standing());
    mulligan.work({ poll: '1s', ...mixture.work });
    const run = async (seconds: number): Promise<void> => {
      for (let ms = 0; ms < seconds * 1_000; ms += FILL_MS) {
        await scheduler.run(scheduler.now + FILL_MS);
        await finished(scheduler, fill.next(starts));
      }
    };
    await run(mixture.fromSecond ?? 0);
    const before = starts.length;
    await run(mixture.seconds);
    process.kill();
    await store.close();
    return starts.slice(before);
  });
}

export function count(starts: readonly string[], name: string): number {
  return starts.filter((one) => one === name).length;
}

/** Time passes until it is done. */
async function finished(scheduler: Scheduler, work: Promise<unknown>): Promise<void> {
  let isDone = false;
  void work.finally(() => {
    isDone = true;
  });
  while (!isDone) await scheduler.run(scheduler.now + 1, () => isDone);
  await work;
}

/** Enqueues the jobs of a mixture. */
class Filling {
  readonly #flows: readonly Flow[];
  readonly #mulligan: Mulligan;
  readonly #process: SimProcess;
  readonly #made: Map<string, number> = new Map();
  readonly #owed: Map<string, number> = new Map();

  constructor(flows: readonly Flow[], mulligan: Mulligan, process: SimProcess) {
    this.#flows = flows;
    this.#mulligan = mulligan;
    this.#process = process;
  }

  async standing(): Promise<void> {
    for (const flow of this.#flows) await this.#add(flow, flow.standing ?? 0);
  }

  /** What has started is enqueued again, and what comes in the time that has passed. */
  async next(starts: readonly string[]): Promise<void> {
    for (const flow of this.#flows) {
      if (flow.standing !== undefined && !flow.fails) {
        await this.#add(flow, flow.standing + count(starts, flow.name) - (this.#made.get(flow.name) ?? 0));
      }
      const owed = (this.#owed.get(flow.name) ?? 0) + ((flow.perSecond ?? 0) * FILL_MS) / 1_000;
      await this.#add(flow, Math.floor(owed));
      this.#owed.set(flow.name, owed % 1);
    }
  }

  async #add(flow: Flow, jobs: number): Promise<void> {
    if (jobs <= 0) return;
    const { random } = this.#process.clock;
    const made = this.#made.get(flow.name) ?? 0;
    // Each key at least once, and then as strangers choose.
    const key = (n: number): number =>
      made + n < (flow.keys ?? 1) ? made + n : Math.floor(random() * (flow.keys ?? 1));
    const inputs = Array.from({ length: jobs }, (_, n) => ({ input: key(n), ...flow.options }));
    this.#made.set(flow.name, made + jobs);
    await this.#mulligan.enqueueMany(flow.name, inputs);
  }
}
