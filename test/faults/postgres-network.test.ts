import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { defineJob, Mulligan, StoreBusyError, StoreUnavailableError } from '../../src/index.ts';
import { jobs, quick } from '../processes/jobs.ts';
import { expectSoundTables, TestDatabase } from '../support/postgres-database.ts';
import { type Mishap, TcpProxy } from '../support/tcp-proxy.ts';
import { chance } from './chance.ts';
import { Effects } from './effects.ts';
import { tell } from './figures.ts';
import { checkLedgers } from './ledger-check.ts';
import { hardy } from './load.ts';

const server = inject('postgresUrl');
/** Longer for a soak. */
const STORM_MS = Number(process.env.MULLIGAN_SOAK_SECONDS ?? 4) * 1_000;
const PATIENCE_MS = STORM_MS + 90_000;
const mishaps: readonly Mishap[] = ['lose the request', 'cut after the request', 'lose the answer'];
/** Where a lost answer hurts: the statements that write, and the COMMIT of a handler's transaction. */
const WRITES = /\.(?:enqueue|claim|settle|heartbeat)_\w+\(|^COMMIT/;

/** A queue behind a bad network, and the same queue seen from beside it. */
class Behind implements AsyncDisposable {
  readonly database: TestDatabase;
  readonly proxy: TcpProxy;
  readonly mulligan: Mulligan;
  readonly beside: Mulligan;
  readonly log: string[];

  static async open(): Promise<Behind> {
    const database = await TestDatabase.create(server);
    const proxy = await TcpProxy.open(database.port);
    const log: string[] = [];
    const beside = await Mulligan.open(database.url, { jobs, log: () => {} });
    const mulligan = await Mulligan.open(proxy.through(database.url), {
      jobs,
      log: ({ message }) => log.push(message),
    });
    return new Behind(database, proxy, mulligan, beside, log);
  }

  private constructor(database: TestDatabase, proxy: TcpProxy, mulligan: Mulligan, beside: Mulligan, log: string[]) {
    this.database = database;
    this.proxy = proxy;
    this.mulligan = mulligan;
    this.beside = beside;
    this.log = log;
  }

  async allEnded(): Promise<void> {
    for (;;) {
      const { states } = await this.beside.stats();
      if (states.ready + states.running + states.scheduled + states.retrying === 0) return;
      await sleep(20);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.proxy.mishap = () => null;
    await this.mulligan.close({ grace: 0 });
    await this.beside.close();
    await this.proxy[Symbol.asyncDispose]();
    await this.database[Symbol.asyncDispose]();
  }
}

/** Numbered jobs; which of the numbers were acknowledged, and that each of those is one job. */
class Numbered {
  readonly acknowledged: Map<number, string> = new Map();
  refused = 0;
  #next = 0;

  async enqueue(mulligan: Mulligan): Promise<void> {
    const n = this.#next++;
    try {
      this.acknowledged.set(n, (await mulligan.enqueue(quick, { n }, hardy)).id);
    } catch (error) {
      if (!(error instanceof StoreUnavailableError || error instanceof StoreBusyError)) throw error;
      this.refused++;
    }
  }

  async expectOneEach(mulligan: Mulligan): Promise<void> {
    const stored = await mulligan.jobs.list({ name: quick.name, limit: 10_000 });
    const numbers = stored.map(({ payload }) => (payload as { n: number }).n);
    expect(new Set(numbers).size, 'a job was doubled').toBe(numbers.length);
    const idOf = new Map(stored.map(({ id, payload }) => [(payload as { n: number }).n, id]));
    for (const [n, id] of this.acknowledged) expect(idOf.get(n)).toBe(id);
  }
}

describe('a network that cuts connections at any moment', () => {
  it('loses and doubles no job, no end and no effect, also when it cuts between a COMMIT and its answer', {
    timeout: PATIENCE_MS,
  }, async () => {
    const luck = chance();
    await using behind = await Behind.open();
    const { mulligan, beside, proxy, database } = behind;
    const effects = await Effects.open(database.url, mulligan);
    const numbered = new Numbered();
    const completed = new Map<string, number>();
    mulligan.on('completed', ({ id }) => completed.set(id, (completed.get(id) ?? 0) + 1));
    mulligan.work({ concurrency: 20, lease: '2s', poll: '50ms' });
    proxy.mishap = (statement) => (WRITES.test(statement) && luck.index(6) === 0 ? luck.oneOf(mishaps) : null);
    const stopAt = performance.now() + STORM_MS;
    while (performance.now() < stopAt) {
      await Promise.all([numbered.enqueue(mulligan), numbered.enqueue(mulligan)]);
      if (luck.index(3) === 0) await effects.enqueue(2, luck.between(0, 10));
      if (luck.index(40) === 0) proxy.cutAll();
      proxy.delayMs = luck.index(20) === 0 ? luck.between(0, 40) : 0;
      await sleep(luck.between(0, 10));
    }
    proxy.mishap = () => null;
    proxy.delayMs = 0;
    await behind.allEnded();
    await numbered.expectOneEach(beside);
    await effects.expectOnceEach();
    const acknowledged = [...numbered.acknowledged.values(), ...effects.acknowledged];
    const { stats } = await checkLedgers(beside, { acknowledged });
    expect([...completed].filter(([, times]) => times > 1)).toEqual([]);
    for (const mishap of mishaps) expect(proxy.happened[mishap]).toBeGreaterThan(0);
    await expectSoundTables(database.url);
    tell('cut connections', {
      jobs: stats.totals.enqueued,
      effects: effects.acknowledged.length,
      refused: numbered.refused,
      ...proxy.happened,
    });
  });

  it('loses the answer to the COMMIT of a transaction: the job is completed by that run, and its effect is there once', async () => {
    await using behind = await Behind.open();
    const { mulligan, beside, proxy, database } = behind;
    const effects = await Effects.open(database.url, mulligan);
    await effects.enqueue(5, 0);
    let lost = 0;
    proxy.mishap = (statement) => (statement === 'COMMIT' && ++lost % 2 === 1 ? 'lose the answer' : null);
    const completed: string[] = [];
    mulligan.on('completed', ({ id }) => completed.push(id));
    mulligan.work({ concurrency: 1 });
    await behind.allEnded();
    await expect.poll(() => completed.length).toBe(5);
    expect(proxy.happened['lose the answer']).toBe(3);
    await effects.expectOnceEach();
    const { stats } = await checkLedgers(beside, effects);
    expect(stats.totals.runs).toMatchObject({ completed: 5, failed: 0, crashed: 0 });
  });
});

describe('a network that falls silent', () => {
  it('for the connections there are: others are made, and runs keep their leases', { timeout: 90_000 }, async () => {
    await using behind = await Behind.open();
    const { beside, proxy, database } = behind;
    const gate = Promise.withResolvers<void>();
    const held = defineJob<null>({ name: 'held', run: () => gate.promise });
    await using mulligan = await Mulligan.open(proxy.through(database.url), { jobs: [quick, held], log: () => {} });
    const running = await mulligan.enqueueMany(
      held,
      Array(5)
        .fill(null)
        .map((input) => ({ input })),
    );
    const worker = mulligan.work({ concurrency: 10, lease: '25s', poll: '100ms' });
    await expect.poll(() => worker.running, { timeout: 20_000 }).toBe(5);
    proxy.fallSilentForThese();
    // Its answer never comes, and the connection stays open.
    const { id } = await mulligan.enqueue(quick, { n: 1 });
    await expect.poll(async () => (await beside.jobs.get(id))?.state, { timeout: 60_000 }).toBe('completed');
    gate.resolve();
    await behind.allEnded();
    const { stats } = await checkLedgers(beside, { acknowledged: [id, ...running.map((job) => job.id)] });
    expect(stats.totals.runs).toMatchObject({ completed: 6, failed: 0, crashed: 0 });
  });
});
