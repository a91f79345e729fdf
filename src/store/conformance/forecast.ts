import assert from 'node:assert/strict';
import type { Store, StoreForecast, UpcomingJobs } from '../store.ts';
import {
  bury,
  claimOne,
  complete,
  enqueueOne,
  HOUR,
  MINUTE,
  newJob,
  newJobs,
  only,
  redrive,
  retryIn,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const ROWS = 60_000;

function read(store: Store, queue?: string): Promise<StoreForecast> {
  return store.forecast({ rows: ROWS, ...(queue === undefined ? {} : { queue }) });
}

/** In the middle of a minute, so that a clock that runs on moves nothing to the next one. */
const inMinute = (minute: number): number => minute * MINUTE + MINUTE / 2;

const brief = ({ lane, resource, name, minute, count }: UpcomingJobs): unknown[] => [
  lane,
  resource,
  name,
  minute,
  count,
];

export const forecastCases: readonly StoreCase[] = cases('forecast', {
  'an empty store has nothing to come': async ({ store }) => {
    const { now: _, ...answer } = await read(store);
    const none = { running: { count: 0, isExact: true }, ended: { completed: 0, dead: 0, cancelled: 0 } };
    const nothing = { lanes: [], queues: [], upcoming: [], ...none, arrivedPerMinute: 0, endedPerMinute: 0 };
    assert.deepEqual(answer, { isComplete: true, ...nothing });
  },

  'retries are counted by resource, name and the minute in which they fall due': async ({ store }) => {
    for (const [name, resource, minute] of [
      ['a', 'smtp', 0],
      ['a', 'smtp', 0],
      ['a', null, 0],
      ['b', 'smtp', 59],
      ['b', 'smtp', 60],
    ] as const) {
      await settleOne(store, await startOne(store, { name, resource }), retryIn(inMinute(minute)));
    }
    const { upcoming, lanes } = await read(store);
    assert.deepEqual(
      upcoming.map(brief).sort(),
      [
        ['retry', 'smtp', 'a', 0, 2],
        ['retry', 'smtp', 'b', 59, 1],
        ['retry', null, 'a', 0, 1],
      ].sort(),
    );
    assert.ok(upcoming.every(({ isExact, expected, count }) => isExact && expected === count));
    assert.deepEqual(only(lanes), {
      queue: 'default',
      lane: 'retry',
      due: { count: 0, isExact: true },
      later: { count: 5, isExact: true },
      oldestDueAt: null,
    });
  },

  'jobs that wait for their first run, suspects and redrives are told by their lane': async ({ store }) => {
    await bury(store);
    await redrive(store, { state: 'dead' });
    await store.enqueue([newJob({ name: 'x', delayMs: inMinute(2) }), newJob({ name: 'y', delayMs: inMinute(2) })]);
    const job = await startOne(store, { name: 'z', queue: 'other' });
    await settleOne(store, job, retryIn(inMinute(3), 'suspect'));
    const { upcoming, lanes } = await read(store);
    assert.deepEqual(upcoming.map(brief), [
      ['fresh', null, 'x', 2, 1],
      ['fresh', null, 'y', 2, 1],
      ['suspect', null, 'z', 3, 1],
    ]);
    assert.deepEqual(
      lanes.map(({ queue, lane, due, later }) => [queue, lane, due.count, later.count]),
      [
        ['default', 'fresh', 0, 2],
        ['default', 'redrive', 1, 0],
        ['other', 'suspect', 0, 1],
      ],
    );
  },

  'only the queue that is asked for is counted': async ({ store }) => {
    await store.enqueue([newJob({ queue: 'a' }), newJob({ queue: 'b' }), newJob({ queue: 'b', delayMs: inMinute(1) })]);
    await settleOne(store, await startOne(store, { queue: 'c' }), complete);
    const answer = await read(store, 'b');
    assert.deepEqual(
      answer.lanes.map(({ queue, due, later }) => [queue, due.count, later.count]),
      [['b', 1, 1]],
    );
    assert.deepEqual(
      answer.upcoming.map(({ queue, minute }) => [queue, minute]),
      [['b', 1]],
    );
    assert.deepEqual([answer.arrivedPerMinute, answer.endedPerMinute], [0.2, 0]);
    assert.equal((await read(store, 'c')).endedPerMinute, 0.2);
    assert.deepEqual((await read(store, 'none')).lanes, []);
  },

  'jobs behind limits are in their queue': async ({ store }) => {
    await store.enqueue([newJob({ limits: [{ limit: 'l', key: 'k' }] }), newJob()]);
    assert.equal(only((await read(store, 'default')).lanes).due.count, 2);
  },

  'a due job tells since when it waits; one that runs does not wait': async ({ store, advance }) => {
    await enqueueOne(store);
    await advance(2 * MINUTE);
    await enqueueOne(store);
    const before = await read(store);
    const { due, oldestDueAt } = only(before.lanes);
    assert.equal(due.count, 2);
    const waitedMs = before.now - (oldestDueAt as number);
    assert.ok(waitedMs >= 2 * MINUTE && waitedMs < 3 * MINUTE, `waited ${waitedMs} ms`);
    await claimOne(store);
    const after = only((await read(store)).lanes);
    assert.equal(after.due.count, 1);
    assert.ok((after.oldestDueAt as number) > (oldestDueAt as number));
  },

  'jobs that run, and jobs that have ended, are counted by their queue': async ({ store }) => {
    await settleOne(store, await startOne(store), complete);
    await settleOne(store, await startOne(store, { queue: 'a' }), complete);
    await bury(store, { queue: 'a' });
    await store.cancel([await enqueueOne(store, { delayMs: HOUR })]);
    await startOne(store, { queue: 'a' });
    const running = await startOne(store);
    const all = await read(store);
    assert.deepEqual(all.running, { count: 2, isExact: true });
    assert.deepEqual(all.ended, { completed: 2, dead: 1, cancelled: 1 });
    assert.deepEqual(all.queues, [
      { queue: 'a', running: 1, ended: { completed: 1, dead: 1, cancelled: 0 } },
      { queue: 'default', running: 1, ended: { completed: 1, dead: 0, cancelled: 1 } },
    ]);
    const ofA = await read(store, 'a');
    assert.deepEqual([ofA.running.count, ofA.ended], [1, { completed: 1, dead: 1, cancelled: 0 }]);
    assert.deepEqual(only(ofA.queues), all.queues[0]);
    await settleOne(store, running, retryIn(HOUR));
    assert.equal((await read(store)).running.count, 1);
    const none = await read(store, 'none');
    assert.deepEqual([none.running.count, none.ended], [0, { completed: 0, dead: 0, cancelled: 0 }]);
  },

  'a count that would read too much stops, says so, and tells what to expect': async ({ store }) => {
    // Some 20 in each of three seconds of minute 0, of which 10 are read.
    for (const seconds of [10, 11, 12]) await store.enqueue(newJobs(20, { delayMs: seconds * 1_000 }));
    await store.enqueue(newJobs(15));
    const { lanes, upcoming } = await store.forecast({ rows: 10 });
    const { due } = only(lanes);
    assert.deepEqual(due, { count: 10, isExact: false });
    const { count, isExact, expected, minute } = only(upcoming);
    assert.deepEqual([minute, count, isExact], [0, 10, false]);
    assert.ok(expected > 30 && expected < 90, `expected ${expected}`);
  },

  'the rates are those of the last five minutes': async ({ store, advance }) => {
    await settleOne(store, await startOne(store), complete);
    await advance(6 * MINUTE);
    await store.enqueue([...newJobs(7), newJob({ delayMs: HOUR })]);
    for (let job = 0; job < 2; job++) await settleOne(store, await claimOne(store), complete);
    await settleOne(store, await claimOne(store), retryIn(MINUTE));
    await bury(store, { queue: 'other' });
    const { arrivedPerMinute, endedPerMinute } = await read(store);
    // Not the one that was accepted for later.
    assert.equal(arrivedPerMinute, 8 / 5);
    assert.equal(endedPerMinute, 3 / 5);
  },
});
