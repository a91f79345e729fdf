import assert from 'node:assert/strict';
import type { StatsRow, Store } from '../store.ts';
import {
  bury,
  claimOne,
  complete,
  crash,
  die,
  discard,
  enqueueOne,
  giveBack,
  HOUR,
  LEASE,
  MINUTE,
  newJob,
  only,
  pruneWith,
  quota,
  redrive,
  retryIn,
  settlement,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

async function statsOf(store: Store, queue = 'default', name = 'email.send'): Promise<StatsRow> {
  return only((await store.stats()).rows.filter((row) => row.queue === queue && row.name === name));
}

export const statsCases: readonly StoreCase[] = cases('stats', {
  'an empty store has no rows': async ({ store }) => {
    assert.deepEqual((await store.stats()).rows, []);
  },

  'a first job is counted, and every other number is zero': async ({ store }) => {
    await enqueueOne(store);
    assert.deepEqual(await statsOf(store), {
      queue: 'default',
      name: 'email.send',
      states: { scheduled: 0, ready: 1, running: 0, retrying: 0, completed: 0, dead: 0, cancelled: 0 },
      totals: {
        enqueued: 1,
        runs: { completed: 0, failed: 0, crashed: 0, snoozed: 0, released: 0, cancelled: 0, deferred: 0 },
        retries: 0,
        successfulRetries: 0,
        dead: { exhausted: 0, unrecoverable: 0, deadline: 0, poison: 0, 'no-handler': 0, runs: 0 },
      },
    });
  },

  'queues and names are counted apart': async ({ store }) => {
    await store.enqueue([
      newJob({ queue: 'a', name: 'x' }),
      newJob({ queue: 'a', name: 'y' }),
      newJob({ queue: 'b', name: 'x' }),
      newJob({ queue: 'b', name: 'x' }),
    ]);
    assert.equal((await store.stats()).rows.length, 3);
    assert.equal((await statsOf(store, 'b', 'x')).totals.enqueued, 2);
  },

  'states are counted as they are now': async ({ store, advance }) => {
    await settleOne(store, await startOne(store), complete);
    await bury(store);
    await store.cancel([await enqueueOne(store, { delayMs: HOUR })]);
    await settleOne(store, await startOne(store), retryIn(MINUTE));
    await startOne(store);
    await enqueueOne(store, { delayMs: MINUTE });
    await enqueueOne(store);
    const each = { scheduled: 1, ready: 1, running: 1, retrying: 1, completed: 1, dead: 1, cancelled: 1 };
    assert.deepEqual((await statsOf(store)).states, each);
    await advance(2 * MINUTE);
    assert.deepEqual((await statsOf(store)).states, { ...each, scheduled: 0, retrying: 0, ready: 3 });
  },

  'a job counts as enqueued once, however often it is sent': async ({ store }) => {
    const job = newJob({ key: 'k' });
    await store.enqueue([job, job, newJob({ key: 'k' })]);
    await store.enqueue([job]);
    assert.equal((await statsOf(store)).totals.enqueued, 1);
  },

  'finished runs are counted by outcome, and repeated settlements once': async ({ store, advance }) => {
    const decisions = [retryIn(0), giveBack('snooze'), giveBack('release'), giveBack('defer'), complete];
    let job = await startOne(store);
    for (const decision of decisions) {
      await settleOne(store, job, decision);
      await settleOne(store, job, decision);
      if (decision !== complete) job = await claimOne(store);
    }
    const lost = await startOne(store);
    await advance(2 * LEASE);
    await store.settle([crash(lost, retryIn(HOUR)), settlement(lost, complete)]);
    await settleOne(store, await startOne(store), { kind: 'cancel', counted: true, rule: 'thrown:Cancel' });
    const { runs } = (await statsOf(store)).totals;
    const once = { completed: 1, failed: 1, crashed: 1, snoozed: 1, released: 1, cancelled: 1, deferred: 1 };
    assert.deepEqual(runs, once);
  },

  'retries are counted runs after the first attempt': async ({ store }) => {
    // Attempts 1 (failed), 2 (given back), 2 (failed), 3 (completed).
    let job = await startOne(store);
    for (const decision of [retryIn(0), giveBack('release'), retryIn(0)]) {
      await settleOne(store, job, decision);
      job = await claimOne(store);
    }
    await settleOne(store, job, complete);
    await settleOne(store, await startOne(store), complete);
    assert.partialDeepStrictEqual((await statsOf(store)).totals, { retries: 2, successfulRetries: 1 });
  },

  'a redriven job with its attempts reset does not count as a retry': async ({ store }) => {
    const id = await bury(store);
    await redrive(store, { ids: [id] });
    await settleOne(store, await claimOne(store), complete);
    assert.partialDeepStrictEqual((await statsOf(store)).totals, { enqueued: 1, retries: 0, successfulRetries: 0 });
  },

  'deaths are counted by reason, and a second death again': async ({ store }) => {
    const id = await bury(store, {}, 'poison');
    await redrive(store, { ids: [id] });
    await settleOne(store, await claimOne(store), die('deadline'));
    await settleOne(store, await startOne(store), complete);
    const none = { exhausted: 0, unrecoverable: 0, 'no-handler': 0, runs: 0 };
    assert.deepEqual((await statsOf(store)).totals.dead, { ...none, poison: 1, deadline: 1 });
  },

  'a job is counted in the queue it was enqueued to': async ({ store }) => {
    const job = await startOne(store, { queue: 'mail', retryQueue: 'mail.retry' });
    await settleOne(store, job, retryIn(0));
    await settleOne(store, await claimOne(store, { queues: [quota({ queue: 'mail.retry' })] }), complete);
    const row = only((await store.stats()).rows);
    assert.equal(row.queue, 'mail');
    assert.equal(row.states.completed, 1);
    assert.partialDeepStrictEqual(row.totals, { retries: 1, successfulRetries: 1 });
  },

  'totals survive pruning and discarding': async ({ store, advance }) => {
    await settleOne(store, await startOne(store), complete);
    const dead = await bury(store, {}, 'poison');
    const before = (await statsOf(store)).totals;
    await advance(2 * HOUR);
    await discard(store, { ids: [dead] });
    await pruneWith(store, { completedMs: HOUR, deadMs: null, cancelledMs: null }, 10);
    const after = await statsOf(store);
    assert.deepEqual(after.totals, before);
    assert.deepEqual([after.states.completed, after.states.dead], [0, 0]);
  },
});
