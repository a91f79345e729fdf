import assert from 'node:assert/strict';
import type { VerbName } from '../verbs.ts';
import {
  bury,
  changeRequest,
  claim,
  enqueueOne,
  giveBack,
  HOUR,
  redrive,
  retryIn,
  settleOne,
  startOne,
} from './builders.ts';
import { claimLimited } from './claim-limited.ts';
import { ask, claimGated, enqueueBehind, gateOf, recover, trip } from './gate-builders.ts';
import { cases, type StoreCase, type StoreHarness } from './suite.ts';

/** Counts hints. A store that cannot give them skips these cases: polling alone must do. */
class Listener {
  heard = 0;
  readonly #harness: StoreHarness;
  readonly stop: () => void;

  constructor(harness: StoreHarness) {
    this.#harness = harness;
    this.stop = harness.store.onWork(() => {
      this.heard++;
    });
  }

  /** Lets hints that are on their way arrive, and forgets them. */
  async quiet(): Promise<void> {
    await this.#harness.advance(10);
    this.heard = 0;
  }

  async assertHeard(after: string): Promise<void> {
    for (let turn = 0; turn < 50 && this.heard === 0; turn++) await this.#harness.advance(10);
    assert.ok(this.heard > 0, `no hint came after ${after}`);
  }
}

export const wakeCases: readonly StoreCase[] = cases('wake', {
  'listeners hear of new jobs': async (harness) => {
    const listeners = [new Listener(harness), new Listener(harness)];
    await enqueueOne(harness.store);
    for (const listener of listeners) await listener.assertHeard('enqueue');
  },

  'a hint comes after the job can be claimed': async (harness) => {
    const claims: Promise<number>[] = [];
    harness.store.onWork(() => {
      claims.push(claim(harness.store).then(({ jobs }) => jobs.length));
    });
    await enqueueOne(harness.store);
    for (let turn = 0; turn < 50 && claims.length === 0; turn++) await harness.advance(10);
    assert.equal(await claims[0], 1);
  },

  'listeners hear of redriven jobs and resumed queues': async (harness) => {
    const id = await bury(harness.store);
    await harness.store.hold({ queue: 'default' }, null);
    const listener = new Listener(harness);
    await listener.quiet();
    await redrive(harness.store, { ids: [id] });
    await listener.assertHeard('redrive');
    await listener.quiet();
    await harness.store.release({ queue: 'default' });
    await listener.assertHeard('resume');
  },

  'listeners hear of runs that were given back or may be retried at once': async (harness) => {
    const [a, b] = [await startOne(harness.store), await startOne(harness.store)];
    const listener = new Listener(harness);
    await listener.quiet();
    await settleOne(harness.store, a, giveBack('release'));
    await listener.assertHeard('release');
    await listener.quiet();
    await settleOne(harness.store, b, retryIn(0));
    await listener.assertHeard('retry');
  },

  'listeners hear of gates that are changed, by reports or by hand': async (harness) => {
    const { store } = harness;
    await enqueueBehind(store, 'smtp', 'fresh', 5);
    await trip(store, 'smtp');
    const listener = new Listener(harness);
    await listener.quiet();
    await recover(harness, 'smtp');
    await listener.assertHeard('the recovery of a gate');
    for (const order of ['open', 'unpin', 'close', 'reset'] as const) {
      await listener.quiet();
      await store.changeGate(gateOf('smtp'), order, 'ann');
      if (order !== 'open') await listener.assertHeard(order);
    }
  },

  'a listener that has stopped hears nothing': async (harness) => {
    const [stopped, other] = [new Listener(harness), new Listener(harness)];
    stopped.stop();
    stopped.stop();
    await enqueueOne(harness.store);
    await other.assertHeard('enqueue');
    assert.equal(stopped.heard, 0);
  },
});

export const closeCases: readonly StoreCase[] = cases('close', {
  'every verb of a closed store says that it is closed': async ({ store }) => {
    const job = await startOne(store);
    await store.close();
    const calls: Readonly<Record<VerbName, () => Promise<unknown>>> = {
      enqueue: () => store.enqueue([]),
      claim: () => claim(store),
      claimGated: () => claimGated(store, 'smtp'),
      claimLimited: () => claimLimited(store),
      permit: () => store.permit({ limit: 'shop', key: '', cost: 1 }),
      report: () => ask(store, gateOf('smtp')),
      heartbeat: () => store.heartbeat([{ ...job, leaseMs: HOUR }]),
      settle: () => store.settle([]),
      expired: () => store.expired(1),
      remember: () => store.remember(job, 'a', '1'),
      recall: () => store.recall(job.id),
      cancelRequested: () => store.cancelRequested([job.id]),
      get: () => store.get([job.id]),
      ended: () => store.ended([job.id], null),
      list: () => store.list({ limit: 1 }),
      runs: () => store.runs(job.id),
      logs: () => store.logs(job.id, 1),
      ledger: () => store.ledger({ since: 0, limit: 1 }),
      stats: () => store.stats(),
      forecast: () => store.forecast({ rows: 1 }),
      history: () => store.history({ from: 0, to: HOUR, stepMs: HOUR }),
      rollUp: () => store.rollUp(),
      limits: () => store.limits({ limit: 1 }),
      limitKeys: () => store.limitKeys('shop', { limit: 1 }),
      schedules: () => store.schedules({ limit: 1 }),
      errorGroups: () => store.errorGroups({ limit: 1 }),
      errorHistory: () => store.errorHistory({ from: 0, to: HOUR, stepMs: HOUR }),
      gates: () => store.gates({ limit: 1 }),
      gateHistory: () => store.gateHistory(gateOf('smtp'), 1),
      queues: () => store.queues(),
      cancel: () => store.cancel([job.id]),
      change: () => store.change(changeRequest('redrive', { ids: [job.id] })),
      count: () => store.count({}),
      operations: () => store.operations(1),
      hold: () => store.hold({ queue: 'default' }, null),
      release: () => store.release({ queue: 'default' }),
      changeGate: () => store.changeGate(gateOf('smtp'), 'open', 'ann'),
      writeLimits: () => store.writeLimits([]),
      retention: () => store.retention(),
      writeRetention: () => store.writeRetention([]),
      writeSchedule: () => store.writeSchedule({ name: 'nightly', from: null, to: null, jobs: [] }),
      register: () => store.register('worker', null),
      workers: () => store.workers(),
      prune: () => store.prune(1),
    };
    for (const [verb, call] of Object.entries(calls)) await assert.rejects(call(), { code: 'CLOSED' }, verb);
  },

  'a store may be closed twice, and listeners may stop afterwards': async ({ store }) => {
    const stop = store.onWork(() => {});
    await store.close();
    await store.close();
    stop();
  },

  'what was under way when the store was closed is answered': async ({ store }) => {
    const answers = Promise.all([enqueueOne(store), enqueueOne(store)]);
    await store.close();
    assert.equal(new Set(await answers).size, 2);
  },
});
