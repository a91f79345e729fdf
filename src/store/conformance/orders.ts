import assert from 'node:assert/strict';
import type { Operation, Order, Store } from '../store.ts';
import { enqueueOne, newJob } from './builders.ts';
import { gateOf } from './gate-builders.ts';
import { schedule } from './schedules.ts';
import { cases, type StoreCase } from './suite.ts';

let made = 0;

function order(note: string | null = 'as ordered'): Order {
  return { id: `01990000-0000-7000-9000-${String(++made).padStart(12, '0')}`, by: 'ann', note };
}

/** Every order that is no bulk action, with the action under which it is on record. */
const orders: readonly (readonly [
  action: Operation['action'],
  give: (store: Store, by?: Order) => Promise<unknown>,
])[] = [
  ['pause', (store, by) => store.hold({ queue: 'default' }, null, by)],
  ['resume', (store, by) => store.release({ queue: 'default' }, by)],
  ['pause', (store, by) => store.hold({ resource: 'smtp' }, null, by)],
  ['resume', (store, by) => store.release({ resource: 'smtp' }, by)],
  ['gate', (store, by) => store.changeGate(gateOf('smtp'), 'open', 'ann', by)],
  [
    'limit',
    (store, by) => store.writeLimits([{ limit: 'shop', key: null, source: 'set', settings: { concurrency: 2 } }], by),
  ],
  [
    'limit',
    (store, by) =>
      store.writeLimits(
        [
          { limit: 'shop', key: 'b', source: 'set', settings: { concurrency: 1 } },
          { limit: 'cart', key: null, source: 'set', settings: null },
        ],
        by,
      ),
  ],
  ['schedule', (store, by) => store.writeSchedule({ name: 'nightly', from: null, to: schedule(), jobs: [] }, by)],
];

export const orderCases: readonly StoreCase[] = cases('orders', {
  'an order is on record with who gave it, in the same write': async ({ store }) => {
    for (const [index, [action, give]] of orders.entries()) {
      const given = order();
      await give(store, given);
      const [newest, ...others] = await store.operations(100);
      assert.equal(others.length, index);
      const { id, by } = given;
      assert.partialDeepStrictEqual(newest, {
        id,
        by,
        action,
        state: 'done',
        changed: 0,
        skipped: 0,
        canary: [],
      });
      assert.equal(newest?.endedAt, newest?.startedAt);
    }
    assert.deepEqual((await store.operations(100)).at(-1)?.selection, { queue: 'default' });
  },

  'the note of an order is kept': async ({ store }) => {
    await store.hold({ queue: 'default' }, null, order('as was said'));
    assert.equal((await store.operations(1))[0]?.note, 'as was said');
  },

  'an order that is sent again leaves no second row': async ({ store }) => {
    for (const [index, [, give]] of orders.entries()) {
      const given = order();
      await give(store, given);
      await give(store, given);
      assert.equal((await store.operations(100)).length, index + 1);
    }
  },

  'what no operator ordered leaves no row': async ({ store }) => {
    for (const [, give] of orders) await give(store);
    await store.cancel([await enqueueOne(store)]);
    assert.deepEqual(await store.operations(100), []);
  },

  'a cancel is on record with its jobs, and how many it ended or told to stop': async ({ store }) => {
    const ids = [await enqueueOne(store), await enqueueOne(store)];
    const unknown = '01990000-0000-7000-8000-00000000dead';
    const given = order(null);
    await store.cancel([...ids, unknown], given);
    const [row] = await store.operations(1);
    const selection = { ids: [...ids, unknown] };
    assert.partialDeepStrictEqual(row, {
      id: given.id,
      action: 'cancel',
      by: 'ann',
      selection,
      changed: 2,
      note: null,
    });
    await store.cancel([...ids, unknown], given);
    assert.equal((await store.operations(10))[0]?.changed, 2);
    await store.cancel([unknown], order(null));
    assert.partialDeepStrictEqual((await store.operations(1))[0], { changed: 0, state: 'done' });
    assert.equal((await store.operations(10)).length, 2);
  },

  'an order that changed nothing, because the schedule was another one, leaves no row': async ({ store }) => {
    await store.writeSchedule({ name: 'nightly', from: null, to: schedule({ code: 'abc' }), jobs: [] });
    const late = schedule();
    assert.equal(
      (await store.writeSchedule({ name: 'nightly', from: 'v0', to: late, jobs: [] }, order())).written,
      false,
    );
    assert.deepEqual(await store.operations(100), []);
  },

  'an order that could not be carried out leaves no row': async ({ store }) => {
    const write = { name: 'nightly', from: null, to: schedule(), jobs: [newJob({ payload: '{\n}' })] };
    await assert.rejects(store.writeSchedule(write, order()));
    assert.deepEqual(await store.operations(100), []);
    assert.deepEqual((await store.schedules({ limit: 1 })).schedules, []);
  },
});
