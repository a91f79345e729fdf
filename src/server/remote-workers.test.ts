import { expect, it } from 'vitest';
import { MemoryStore } from '../store/memory/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import type { ClaimFacts } from './remote-worker.ts';
import { RemoteWorkers } from './remote-workers.ts';
import { scopes } from './security/scopes.ts';

const MINUTE = 60_000;
const facts: ClaimFacts = {
  ...{ queues: ['emails'], names: null, limit: 4, leaseMs: 30_000 },
  ...{ host: '10.0.0.7', version: '3.1', agent: 'curl/8.5.0' },
};
const local = { name: 'local', scopes: new Set(scopes), isLocal: true };

function open() {
  const clock = new VirtualClock();
  let writes = 0;
  class CountedStore extends MemoryStore {
    override register(...args: Parameters<MemoryStore['register']>) {
      writes++;
      return super.register(...args);
    }
  }
  const store = new CountedStore({ clock });
  const errors: unknown[] = [];
  const workers = new RemoteWorkers(store, clock, (error) => errors.push(error));
  const claim = (id: string, more: Partial<ClaimFacts> = {}, jobs: Promise<void> = Promise.resolve()) =>
    workers.during(id, { ...facts, ...more }, () => jobs);
  const states = async () => (await store.workers()).map(({ id, state }) => `${id} ${state}`);
  return { clock, store, workers, claim, states, errors, writes: () => writes };
}

it('a worker is listed from its first claim on, with what its claims tell', async () => {
  const { clock, store, claim, workers } = open();
  await claim('script');
  await clock.advance(0);
  expect(await store.workers()).toMatchObject([
    {
      ...{
        id: 'script',
        queues: ['emails'],
        jobs: [],
        concurrency: 4,
        leaseMs: 30_000,
        host: '10.0.0.7',
        version: '3.1',
      },
      ...{ pid: null, mulligan: null, running: null, http: { agent: 'curl/8.5.0', takesAll: true }, state: 'alive' },
    },
  ]);
  await workers.close();
  expect(clock.pending).toBe(0);
});

it('a worker that claims its queues one by one serves all of them', async () => {
  const { clock, store, claim } = open();
  for (let round = 0; round < 6; round++) {
    await claim('script', { queues: ['emails'], names: ['email.send'] });
    await clock.advance(20_000);
    await claim('script', { queues: ['photos'], names: ['photo.resize'] });
    await clock.advance(20_000);
  }
  const [worker] = await store.workers();
  expect(worker).toMatchObject({
    ...{ queues: ['emails', 'photos'], jobs: ['email.send', 'photo.resize'], http: { takesAll: false } },
  });
});

it('claims are written no more often than other workers register, and a worker that has gone is silent, then lost', async () => {
  const { clock, claim, states, writes } = open();
  for (let second = 0; second < 120; second++) {
    await claim('script');
    await clock.advance(1_000);
  }
  expect(writes()).toBeLessThanOrEqual(1 + 120 / 15);
  expect(await states()).toEqual(['script alive']);
  await clock.advance(45_000);
  expect(await states()).toEqual(['script silent']);
  await clock.advance(45_000);
  expect(await states()).toEqual(['script lost']);
  await clock.advance(5 * MINUTE);
  expect(clock.pending).toBe(0);
});

it('a worker stays alive while a claim waits, and while it renews a lease', async () => {
  const { clock, claim, states, workers } = open();
  const jobs = Promise.withResolvers<void>();
  const waiting = claim('script', {}, jobs.promise);
  await clock.advance(5 * MINUTE);
  expect(await states()).toEqual(['script alive']);
  jobs.resolve();
  await waiting;
  for (let beat = 0; beat < 12; beat++) {
    await clock.advance(10_000);
    workers.heard('script');
  }
  expect(await states()).toEqual(['script alive']);
});

it('a name that a worker of another kind has is not taken over', async () => {
  const { clock, store, claim, workers } = open();
  const own = { ...facts, name: 'web', mulligan: '0.1.0', pid: 7, concurrency: 10, jobs: ['a'], running: 1 };
  await store.register('web-1', { ...own, loopDelayMs: 2, http: null });
  await claim('web-1');
  await clock.advance(20_000);
  expect(await store.workers()).toMatchObject([{ id: 'web-1', pid: 7, http: null }]);
  expect(await workers.stopped('web-1', local)).toBe(false);
  expect(await store.workers()).toHaveLength(1);
});

it('a worker that says so has stopped', async () => {
  const { clock, store, claim, workers } = open();
  await claim('script');
  await clock.advance(0);
  expect(await workers.stopped('script', local)).toBe(true);
  await clock.advance(MINUTE);
  expect(await store.workers()).toEqual([]);
  expect(await workers.stopped('script', local)).toBe(false);
});

it('a client that makes up names does not fill the store, and those that are lost make room', async () => {
  const { clock, store, claim } = open();
  await claim('faithful');
  for (let minute = 0; minute < 5; minute++) {
    for (let index = 0; index < 1_500; index++) await claim(`${minute}-${index}`);
    for (let quarter = 0; quarter < 5; quarter++) {
      await clock.advance(15_000);
      await claim('faithful');
    }
  }
  const listed = await store.workers();
  expect(listed.length).toBe(1_000);
  expect(listed.find(({ id }) => id === 'faithful')?.state).toBe('alive');
  expect(listed.filter(({ id }) => id.startsWith('4-')).length).toBeGreaterThan(900);
});

it('two servers of one store list no more workers together than one', async () => {
  const { clock, store, claim } = open();
  const other = new RemoteWorkers(store, clock, () => {});
  for (let index = 0; index < 700; index++) {
    await claim(`one-${index}`);
    await other.during(`two-${index}`, facts, () => Promise.resolve());
  }
  await clock.advance(1);
  await claim('late');
  await clock.advance(20_000);
  const listed = await store.workers();
  expect(listed.length).toBe(1_000);
  expect(listed.some(({ id }) => id === 'late')).toBe(false);
});

it('what clients send is bounded in bytes', async () => {
  const { clock, store, claim } = open();
  const names = Array.from({ length: 1_000 }, (_, index) => `${index}`.padEnd(200, 'x'));
  await claim('script', { names });
  await clock.advance(0);
  const [worker] = await store.workers();
  expect(JSON.stringify(worker).length).toBeLessThan(12_000);
});

it('a store that is away is asked again at the next time, not at once', async () => {
  const { clock, store, claim, states, errors } = open();
  const { workers } = store;
  store.workers = () => Promise.reject(new Error('away'));
  await claim('script');
  await clock.advance(0);
  expect(errors).toHaveLength(1);
  store.workers = workers.bind(store);
  await clock.advance(15_000);
  expect(await states()).toEqual(['script alive']);
});
