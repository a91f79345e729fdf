import assert from 'node:assert/strict';
import type { Job } from '../../job.ts';
import { deadReasons } from '../../retry/decision.ts';
import { ID_OF_DEAD_JOB } from '../reaction.ts';
import type { NewJob, Reaction, Store } from '../store.ts';
import {
  bury,
  cancelNow,
  claim,
  claimOne,
  complete,
  crash,
  die,
  discard,
  enqueueOne,
  giveBack,
  idsOf,
  jobOf,
  LEASE,
  newJob,
  only,
  policy,
  quota,
  redrive,
  retryIn,
  settlement,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

/* What is stored as a job when another one dies. */

function reaction(changes: Partial<Reaction> = {}): Reaction {
  return {
    name: 'refund',
    queue: 'reactions',
    retryQueue: null,
    resource: null,
    priority: 2,
    payload: '{"order":7}',
    policy,
    ...changes,
  };
}

const refunded = { onDead: reaction() };

function reactions(store: Store): Promise<readonly Job[]> {
  return store.list({ queue: 'reactions', limit: 100 });
}

export const reactionCases: readonly StoreCase[] = [
  ...deadReasons.flatMap((reason) =>
    cases('settle', {
      [`a job that dies (${reason}) leaves the job that it was enqueued with, which is due`]: async ({ store }) => {
        const dead = await bury(store, refunded, reason);
        const found = only(await reactions(store));
        assert.partialDeepStrictEqual(found, {
          name: 'refund',
          state: 'ready',
          priority: 2,
          payload: { order: 7 },
          runs: 0,
          key: null,
        });
        assert.notEqual(found.id, dead);
        const stats = (await store.stats()).rows.find(({ name }) => name === 'refund');
        assert.equal(stats?.totals.enqueued, 1);
      },
    }),
  ),
  ...cases('settle', {
    'a job that ends otherwise, or waits again, leaves no reaction': async ({ store }) => {
      for (const decision of [complete, cancelNow, retryIn(0), giveBack('snooze'), giveBack('release')]) {
        await enqueueOne(store, { ...refunded, priority: 0 });
        await settleOne(store, await claimOne(store), decision);
      }
      await bury(store, { priority: 0, queue: 'other' });
      assert.deepEqual(await reactions(store), []);
    },

    'a reaction has all that its definition says, and its own reaction': async ({ store }) => {
      const limits = [{ limit: 'l', key: 'k' }];
      const own = reaction({ name: 'alert', payload: '"alert"' });
      const tags = ['a', 'b'];
      const payload = JSON.stringify({ failed: ID_OF_DEAD_JOB, again: ID_OF_DEAD_JOB });
      const onDead = reaction({ resource: 'r/1', retryQueue: 'later', limits, tags, version: 3, payload, onDead: own });
      const dead = await bury(store, { onDead });
      const found = only(await reactions(store));
      assert.partialDeepStrictEqual(found, {
        resource: 'r/1',
        limits,
        tags,
        version: 3,
        payload: { failed: dead, again: dead },
      });
      await bury(store, { queue: 'second', onDead: reaction({ name: 'first', queue: 'third', onDead: own }) });
      const third = await claimOne(store, { queues: [quota({ queue: 'third' })] });
      await settleOne(store, third, die());
      assert.deepEqual((await reactions(store)).map(({ name }) => name).toSorted(), ['alert', 'refund']);
    },

    'a settlement that is sent again leaves one reaction': async ({ store }) => {
      const job = await startOne(store, refunded);
      const sent = settlement(job, die());
      assert.deepEqual(await store.settle([sent]), ['settled']);
      assert.deepEqual(await store.settle([sent, sent]), ['settled', 'settled']);
      only(await reactions(store));
    },

    'a stale settlement leaves none': async ({ store, advance }) => {
      const job = await startOne(store, refunded);
      await advance(LEASE);
      await settleOne(store, job, retryIn(0), { outcome: 'crashed', error: null });
      const again = await claimOne(store);
      assert.deepEqual(await store.settle([settlement(job, die())]), ['stale']);
      assert.deepEqual(await reactions(store), []);
      await settleOne(store, again, complete);
      assert.deepEqual(await store.settle([settlement(again, die())]), ['stale']);
      assert.deepEqual(await reactions(store), []);
    },

    'of two rescuers that bury a crashed job, one leaves its reaction': async ({ store, advance }) => {
      const job = await startOne(store, refunded);
      assert.deepEqual(await store.settle([crash(job, die('poison'))]), ['stale']);
      assert.deepEqual(await reactions(store), []);
      await advance(LEASE);
      const expired = only(await store.expired(10));
      const buried = crash(expired, die('poison'));
      assert.deepEqual((await Promise.all([store.settle([buried]), store.settle([buried])])).flat().toSorted(), [
        'settled',
        'stale',
      ]);
      only(await reactions(store));
    },

    'a job that is redriven and dies again leaves another reaction': async ({ store }) => {
      const dead = await bury(store, refunded);
      await redrive(store, { ids: [dead] });
      assert.equal((await reactions(store)).length, 1);
      await settleOne(store, await claimOne(store), die());
      const found = await reactions(store);
      assert.equal(new Set(idsOf(found)).size, 2);
    },

    'jobs that die together leave their own reactions': async ({ store }) => {
      const jobs = Array.from(
        { length: 10 },
        (_, n): NewJob => newJob(n % 2 === 0 ? { onDead: reaction({ payload: String(n) }) } : {}),
      );
      await store.enqueue(jobs);
      const claimed = (await claim(store)).jobs;
      const ends = claimed.map((job) => settlement(job, job.id === jobs[4]?.id ? retryIn(0) : die()));
      assert.deepEqual(await store.settle(ends), Array(10).fill('settled'));
      const found = await reactions(store);
      assert.deepEqual(found.map(({ payload }) => payload).toSorted(), [0, 2, 6, 8]);
    },

    'a reaction is found by a claim, and stays when the dead job is discarded': async ({ store }) => {
      const dead = await bury(store, refunded);
      await discard(store, { ids: [dead] });
      const found = await claimOne(store, { queues: [quota({ queue: 'reactions' })] });
      assert.equal(found.payload, '{"order":7}');
    },
  }),
  ...cases('enqueue', {
    'a debounced job that replaces another one replaces its reaction': async ({ store }) => {
      const debounced = { key: 'k', keyLife: 'started', debounce: { maxWaitMs: null } } as const;
      const first = await enqueueOne(store, { ...debounced, ...refunded });
      const other = { onDead: reaction({ payload: '"other"' }) };
      assert.partialDeepStrictEqual(await store.enqueue([newJob({ ...debounced, ...other })]), [
        { id: first, replaced: true },
      ]);
      await settleOne(store, await claimOne(store), die());
      assert.equal(only(await reactions(store)).payload, 'other');
      const second = await enqueueOne(store, { ...debounced, ...refunded });
      await store.enqueue([newJob(debounced)]);
      await settleOne(store, await claimOne(store), die());
      assert.equal((await jobOf(store, second)).state, 'dead');
      only(await reactions(store));
    },

    'a job that is sent again, or whose key is held, changes no reaction': async ({ store }) => {
      const job = newJob({ key: 'k', ...refunded });
      await store.enqueue([job]);
      await store.enqueue([{ ...job, onDead: reaction({ payload: '"again"' }) }]);
      await store.enqueue([newJob({ key: 'k', onDead: reaction({ payload: '"another"' }) })]);
      await settleOne(store, await claimOne(store), die());
      assert.deepEqual(only(await reactions(store)).payload, { order: 7 });
    },
  }),
];
