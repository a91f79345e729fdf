import { expect, it } from 'vitest';
import { defineJob } from './definition.ts';
import { Mulligan } from './mulligan.ts';
import { operatorName } from './operator.ts';
import type { ScheduleDefinition } from './schedule-options.ts';
import { MemoryStore } from './store/memory/store.ts';
import { testQueue } from './testing/queue.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const sync = defineJob({ name: 'sync', queue: 'shop', limit: { name: 'shopify', concurrency: 1 }, run() {} });
const nightly = ['nightly', 'sync', {}, { every: '1h' }] as const;
const by = { by: 'ann' };

/** Every order that is no bulk action, as it is given and as the audit has it. */
const orders: readonly [action: string, note: RegExp, give: (mulligan: Mulligan) => Promise<unknown>][] = [
  ['pause', /^queue shop was paused$/, ({ queues }) => queues.pause('shop', by)],
  ['resume', /^queue shop was resumed$/, ({ queues }) => queues.resume('shop', by)],
  ['gate', /^gate smtp was pinned open$/, ({ gates }) => gates.open('smtp', by)],
  ['gate', /^gate smtp was pinned closed$/, ({ gates }) => gates.close('smtp', by)],
  ['gate', /^gate smtp was given back to its rules$/, ({ gates }) => gates.unpin('smtp', by)],
  ['gate', /^gate smtp was reset$/, ({ gates }) => gates.reset('smtp', by)],
  [
    'limit',
    /^limit shopify, key a, was set: \{"concurrency":5\}$/,
    ({ limits }) => limits.set('shopify', { concurrency: 5 }, { ...by, key: 'a' }),
  ],
  ['limit', /^limit shopify was reset$/, ({ limits }) => limits.reset('shopify', by)],
  ['schedule', /^schedule nightly was set: /, ({ schedules }) => schedules.set(...nightly, by)],
  ['schedule', /^schedule nightly was paused$/, ({ schedules }) => schedules.pause('nightly', by)],
  ['schedule', /^schedule nightly was resumed$/, ({ schedules }) => schedules.resume('nightly', by)],
  ['schedule', /^schedule nightly was triggered$/, ({ schedules }) => schedules.trigger('nightly', by)],
  ['schedule', /^schedule nightly was removed$/, ({ schedules }) => schedules.remove('nightly', by)],
];

it('has a row for every order of an operator: who, what and when, newest first', async () => {
  await using queue = await testQueue({ jobs: [sync] });
  const { mulligan, clock } = queue;
  for (const [action, note, give] of orders) {
    await clock.advance(1_000);
    await give(mulligan);
    const [newest] = await mulligan.audit.list({ limit: 1 });
    const now = clock.now();
    expect(newest).toMatchObject({ action, by: 'ann', state: 'done', changed: 0, startedAt: now, endedAt: now });
    expect(newest?.note).toMatch(note);
  }
  expect(await mulligan.audit.list()).toHaveLength(orders.length);
});

it('has a row of a single job that an operator cancels, and none of what an application does by itself', async () => {
  await using queue = await testQueue({ jobs: [sync] });
  const { mulligan } = queue;
  const jobs = [await mulligan.enqueue('sync', 1, { delay: '1h' }), await mulligan.enqueue('sync', 2, { delay: '1h' })];
  const [first, second] = jobs.map(({ id }) => id) as [string, string];
  expect(await mulligan.jobs.cancel(first)).toBe('cancelled');
  expect(await mulligan.audit.list()).toEqual([]);
  expect(await mulligan.jobs.cancel(second, by)).toBe('cancelled');
  expect(await mulligan.audit.list()).toMatchObject([
    { action: 'cancel', by: 'ann', selection: { ids: [second] }, changed: 1, state: 'done', note: null },
  ]);
});

it('has a row of a schedule that code no longer gives and that was removed for it', async () => {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const open = (schedules: readonly ScheduleDefinition[]) =>
    Mulligan.open(store, { jobs: [sync], schedules, removeMissingSchedules: true, clock, log: () => {} });
  const { audit } = await open([{ name: 'coded', job: sync, input: {}, every: '1h' }]);
  expect(await audit.list()).toEqual([]);
  await open([]);
  const row = { action: 'schedule', by: operatorName(), note: 'schedule coded was removed' };
  expect(await audit.list()).toMatchObject([row]);
});

it('names user and host where an order does not say who gave it', async () => {
  await using queue = await testQueue({ jobs: [sync] });
  await queue.mulligan.gates.open('smtp');
  expect(await queue.mulligan.audit.list()).toMatchObject([{ by: operatorName() }]);
});

it('has no row of an order that was refused', async () => {
  await using queue = await testQueue({ jobs: [sync] });
  const { mulligan } = queue;
  await expect(mulligan.limits.set('shopyfi', { concurrency: 5 })).rejects.toThrow('Did you mean shopify?');
  await expect(mulligan.schedules.trigger('nightly')).rejects.toThrow('the name of a schedule');
  await expect(mulligan.queues.pause('shop', { by: '' })).rejects.toThrow('queues.pause: by');
  expect(await mulligan.schedules.remove('nightly')).toBe(false);
  expect(await mulligan.audit.list()).toEqual([]);
});
