import assert from 'node:assert/strict';
import type { Decision } from '../../retry/decision.ts';
import type { ClaimedJob, Store } from '../store.ts';
import {
  bury,
  changeAll,
  changeRequest,
  claim,
  claimOne,
  complete,
  crash,
  die,
  enqueueOne,
  giveBack,
  HOUR,
  idsOf,
  jobOf,
  LEASE,
  MINUTE,
  newJobs,
  only,
  quota,
  redrive,
  retryIn,
  settleOne,
  startOne,
  timeOf,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

/* A job that is to run now while it runs: it may have looked for what it waits for just before that came. */

async function runNow(store: Store, { id }: ClaimedJob): Promise<void> {
  assert.deepEqual((await changeAll(store, 'runNow', { ids: [id] })).ids, [id]);
}

const waits: readonly [how: string, decision: Decision][] = [
  ['snoozed', giveBack('snooze', HOUR)],
  ['failed', retryIn(HOUR)],
  ['deferred', giveBack('defer', HOUR)],
  ['released for later', giveBack('release', HOUR)],
];

export const runNowCases: readonly StoreCase[] = [
  ...waits.flatMap(([how, decision]) =>
    cases('change', {
      [`a job that is to run now while it runs is due at once when it is ${how}, and waits as ever the next time`]:
        async ({ store }) => {
          const job = await startOne(store);
          await runNow(store, job);
          assert.partialDeepStrictEqual(await jobOf(store, job.id), { state: 'running', runs: 1, dueAt: job.dueAt });
          await settleOne(store, job, decision);
          const now = await timeOf(store);
          const { state, dueAt } = await jobOf(store, job.id);
          assert.equal(state, 'ready');
          assert.ok(dueAt >= job.claimedAt && dueAt <= now);
          assert.equal((await store.runs(job.id)).at(-1)?.nextDueAt, dueAt);
          const again = await claimOne(store);
          assert.equal(again.run, 2);
          await settleOne(store, again, giveBack('snooze', HOUR));
          assert.equal((await jobOf(store, job.id)).state, 'scheduled');
        },
    }),
  ),
  ...cases('change', {
    'a job that is to run now while it runs is due at once when that run crashes': async ({ store, advance }) => {
      const job = await startOne(store);
      await runNow(store, job);
      await advance(LEASE);
      assert.deepEqual(await store.settle([crash(job, retryIn(HOUR))]), ['settled']);
      assert.equal((await claimOne(store)).id, job.id);
    },

    'a job that was to run now while it ran stays completed, and what it did not need is not there after a redrive':
      async ({ store }) => {
        const [completes, dies] = [await startOne(store), await startOne(store)];
        await runNow(store, completes);
        await runNow(store, dies);
        await settleOne(store, completes, complete);
        await settleOne(store, dies, die());
        assert.equal((await jobOf(store, completes.id)).state, 'completed');
        await redrive(store, { ids: [dies.id] });
        const again = await claimOne(store, { queues: [quota({ redrive: 1 })] });
        await settleOne(store, again, giveBack('snooze', HOUR));
        assert.equal((await jobOf(store, dies.id)).state, 'scheduled');
      },

    'a job that is to run now while it runs behind a resource and a limit is found when it is due': async ({
      store,
    }) => {
      const behind = { resource: 'r/1', limits: [{ limit: 'l', key: 'k' }] };
      await enqueueOne(store, behind);
      const { jobs } = await store.claimLimited({ worker: 'w', leaseMs: LEASE, limit: 10, queues: [quota()] });
      const job = only(jobs);
      // Nothing is due, so a store may leave the partition alone for a while.
      await claim(store);
      await store.claimLimited({ worker: 'w', leaseMs: LEASE, limit: 10, queues: [quota()] });
      await runNow(store, job);
      await settleOne(store, job, giveBack('snooze', HOUR));
      const found = await store.claimLimited({ worker: 'w', leaseMs: LEASE, limit: 10, queues: [quota()] });
      assert.deepEqual(idsOf(found.jobs), [job.id]);
    },

    'a job that is given back keeps its due time, also when it was to run now': async ({ store, advance }) => {
      const job = await startOne(store);
      await advance(MINUTE);
      await runNow(store, job);
      await settleOne(store, job, giveBack('release'));
      assert.partialDeepStrictEqual(await jobOf(store, job.id), { state: 'ready', dueAt: job.dueAt });
    },

    'running jobs are found by what is selected, beside those that wait': async ({ store }) => {
      await store.enqueue(newJobs(4, { delayMs: 0 }));
      const { jobs } = await claim(store, { limit: 4 });
      await store.enqueue(newJobs(3, { delayMs: HOUR }));
      const { ids } = await changeAll(store, 'runNow', { name: 'email.send' }, { part: 2 });
      assert.equal(ids.length, 7);
      assert.equal(new Set(ids).size, 7);
      await store.settle(
        jobs.map((job) => ({ ...crash(job), outcome: 'snoozed', decision: giveBack('snooze', HOUR) })),
      );
      assert.equal((await claim(store)).jobs.length, 7);
    },

    'running jobs are not selected by the states of those that wait, nor by an order for so many jobs': async ({
      store,
    }) => {
      const job = await startOne(store);
      assert.deepEqual((await changeAll(store, 'runNow', { state: ['scheduled', 'retrying'] })).ids, []);
      assert.deepEqual((await changeAll(store, 'runNow', { name: 'email.send', limit: 5 })).ids, []);
      await settleOne(store, job, giveBack('snooze', HOUR));
      assert.equal((await jobOf(store, job.id)).state, 'scheduled');
    },

    'a running job waits until its turn, and no longer than the order before allowed': async ({ store }) => {
      await store.enqueue(newJobs(2));
      const { jobs } = await claim(store);
      const began = await timeOf(store);
      const both = { ids: idsOf(jobs) };
      await changeAll(store, 'runNow', both, { intervalMs: MINUTE });
      await changeAll(store, 'runNow', both, { intervalMs: 2 * MINUTE });
      for (const job of jobs) await settleOne(store, job, giveBack('snooze', HOUR));
      const now = await timeOf(store);
      const dueAt = await Promise.all(jobs.map(async ({ id }) => (await jobOf(store, id)).dueAt));
      const [first, second] = dueAt.toSorted((a, b) => a - b) as [number, number];
      assert.ok(first >= began && first <= now);
      assert.ok(second >= began + MINUTE && second <= now + MINUTE);
    },

    'a job that started after the order began is not its concern': async ({ store, advance }) => {
      await enqueueOne(store);
      const order = changeRequest('runNow', { name: 'email.send' }, { part: 0 });
      await store.change(order);
      await advance(1);
      const job = await claimOne(store);
      const { ids, operation } = await store.change({ ...order, part: 100 });
      assert.deepEqual(ids, []);
      assert.notEqual(operation.endedAt, null);
      await settleOne(store, job, giveBack('snooze', HOUR));
      assert.equal((await jobOf(store, job.id)).state, 'scheduled');
    },

    'a running job that was cancelled, and one that is due or has ended, are left alone by runNow': async ({
      store,
    }) => {
      const dead = await bury(store);
      const running = await startOne(store);
      const due = await enqueueOne(store);
      await store.cancel([running.id]);
      const { ids } = await changeAll(store, 'runNow', { ids: [dead, running.id, due, 'unknown'] });
      assert.deepEqual(ids, []);
    },
  }),
];
