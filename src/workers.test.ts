import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { defineJob } from './definition.ts';
import { StoreUnavailableError } from './errors.ts';
import { Mulligan } from './mulligan.ts';
import { MemoryStore } from './store/memory/store.ts';
import { testQueue } from './testing/queue.ts';
import { VirtualClock } from './testing/virtual-clock.ts';
import { packageVersion } from './version.ts';

const email = defineJob<null>({ name: 'email.send', queue: 'emails', retryQueue: 'emails.retry', run: () => {} });
const report = defineJob<null>({ name: 'report', run: () => {} });

describe('a worker is listed', () => {
  it('from its start on, with its version, its queues and the jobs it knows', async () => {
    await using queue = await testQueue({
      jobs: [report, email],
      work: { name: 'mailer', version: '1.4.2', concurrency: 7 },
    });
    await queue.clock.advance(0);
    expect(await queue.mulligan.workers.list()).toEqual([
      {
        id: queue.worker.id,
        name: 'mailer',
        version: '1.4.2',
        mulligan: packageVersion(),
        host: hostname(),
        pid: process.pid,
        concurrency: 7,
        queues: expect.arrayContaining(['default', 'emails', 'emails.retry']),
        jobs: ['email.send', 'report'],
        running: 0,
        leaseMs: 30_000,
        loopDelayMs: null,
        http: null,
        startedAt: queue.clock.now(),
        lastSeenAt: queue.clock.now(),
        state: 'alive',
        alive: true,
      },
    ]);
    expect(packageVersion()).toMatch(/^\d+\.\d+\.\d+/);
  });

  it('for as long as it lives, and no longer', async () => {
    await using queue = await testQueue({ jobs: [report] });
    const second = queue.mulligan.work({ name: 'second' });
    await queue.clock.advance(10 * 60_000);
    const seen = await queue.mulligan.workers.list();
    expect(seen.map(({ alive, startedAt }) => [alive, queue.clock.now() - startedAt])).toEqual([
      [true, 600_000],
      [true, 600_000],
    ]);
    await second.stop();
    expect((await queue.mulligan.workers.list()).map(({ id }) => id)).toEqual([queue.worker.id]);
  });

  it('no more than every 7 s or so, whatever it has to do', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    let registered = 0;
    const register = store.register.bind(store);
    store.register = (...args) => {
      registered++;
      return register(...args);
    };
    const mulligan = await Mulligan.open(store, { jobs: [report], clock });
    const worker = mulligan.work();
    for (let second = 0; second < 600; second++) {
      await mulligan.enqueue(report, null);
      await clock.advance(1_000);
    }
    expect(registered).toBeLessThan(600 / 7);
    expect(registered).toBeGreaterThan(600 / 23);
    await worker.stop();
    expect(clock.pending).toBe(0);
    await mulligan.close();
  });
});

it('a worker works, and stops, while the store refuses to list it', async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  store.register = () => Promise.reject(new StoreUnavailableError('no'));
  const mulligan = await Mulligan.open(store, { jobs: [report], clock, log: () => {} });
  const worker = mulligan.work();
  const { id } = await mulligan.enqueue(report, null);
  await clock.advance(1_000);
  expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'completed' });
  await worker.stop();
  await mulligan.close();
  expect(clock.pending).toBe(0);
});
