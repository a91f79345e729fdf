import { expect, it } from 'vitest';
import { readExposition } from '../../test/support/exposition.ts';
import { defineJob } from '../definition.ts';
import { Mulligan } from '../mulligan.ts';
import { newJob, newJobs, quota } from '../store/conformance/builders.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';

const report = defineJob<null>({ name: 'report', run() {} });

async function opened() {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const mulligan = await Mulligan.open(store, { clock, log: () => {} });
  /** The samples of a family, as `label=value,...: number`. */
  const samples = async (family: string): Promise<string[] | undefined> =>
    readExposition(await mulligan.metrics())
      .get(`mulligan_${family}`)
      ?.samples.map(({ labels, value }) => `${Object.values(labels).join(' ')}: ${value}`);
  return { clock, store, mulligan, samples };
}

it('a gate that is held or pinned is told of, all keys of a parent as one', async () => {
  const { mulligan, store, samples, clock } = await opened();
  await mulligan.gates.open('smtp');
  await mulligan.gates.close('webhook/a.example');
  await mulligan.gates.close('webhook/b.example');
  const gate = { kind: 'resource', name: 'api' } as const;
  const { state } = await store.changeGate(gate, 'reset', 'test');
  const gates = store.gates.bind(store);
  store.gates = async (filter) => [
    ...(await gates(filter)).filter((stored) => stored.gate.name !== 'api'),
    { gate, state: { ...state, heldUntil: clock.now() + 60_000 }, now: clock.now(), waiting: null, firstDueAt: null },
  ];
  expect((await samples('gates_pinned'))?.sort()).toEqual([
    'resource api: 0',
    'resource smtp: 1',
    'resource webhook/*: 2',
  ]);
  expect((await samples('gates_held'))?.sort()).toEqual([
    'resource api: 1',
    'resource smtp: 0',
    'resource webhook/*: 0',
  ]);
  await mulligan.close();
});

it('jobs behind limits are counted by limit, of all keys', async () => {
  const { store, mulligan, samples } = await opened();
  await store.writeLimits([{ limit: 'shop', key: null, source: 'code', settings: { concurrency: 1 } }]);
  await store.enqueue([
    ...newJobs(4, { limits: [{ limit: 'shop', key: 'a' }] }),
    newJob({ limits: [{ limit: 'shop', key: 'b' }] }),
  ]);
  await store.claimLimited({ worker: 'w', leaseMs: 60_000, limit: 10, queues: [quota()] });
  expect(await samples('limit_jobs')).toEqual(['shop running: 2', 'shop waiting: 3']);
  await mulligan.close();
});

it('a schedule whose tick is not fired is due, and late by the age of the tick', async () => {
  const { mulligan, samples, clock } = await opened();
  await mulligan.schedules.set('hourly', report, null, { every: '1h' });
  await mulligan.schedules.set('weekly', report, null, { every: '7d' });
  expect(await samples('schedules')).toEqual([': 2']);
  expect(await samples('schedules_due')).toEqual([': 0']);
  expect(await samples('schedule_lateness_seconds')).toEqual([': 0']);
  const [next] = (await mulligan.schedules.list()).map(({ nextAt }) => nextAt as number);
  await clock.advance((next as number) - clock.now() + 90_000);
  expect(await samples('schedules_due')).toEqual([': 1']);
  expect(await samples('schedule_lateness_seconds')).toEqual([': 90']);
  await mulligan.close();
});

it('a paused queue and actions of operators of the last day are told of', async () => {
  const { store, mulligan, samples, clock } = await opened();
  await store.enqueue(newJobs(2));
  await mulligan.queues.pause('default');
  expect(await samples('queue_paused')).toEqual(['default: 1']);
  await mulligan.queues.resume('default');
  expect(await samples('queue_paused')).toEqual(['default: 0']);
  await mulligan.jobs.cancel({ name: 'email.send' });
  expect(await samples('operations')).toEqual(['cancel done: 1', 'resume done: 1', 'pause done: 1']);
  await clock.advance(25 * 3_600_000);
  expect(await samples('operations')).toEqual([]);
  await mulligan.close();
});
