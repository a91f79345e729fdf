import assert from 'node:assert/strict';
import type { Decision } from '../../retry/decision.ts';
import {
  assertUntouched,
  bury,
  cancelNow,
  claim,
  claimOne,
  complete,
  crash,
  die,
  enqueueOne,
  giveBack,
  HOUR,
  jobOf,
  LEASE,
  newJobs,
  only,
  retryIn,
  settlement,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

export const cancelCases: readonly StoreCase[] = cases('cancel', {
  'a waiting job is cancelled at once': async ({ store, advance }) => {
    const ready = await enqueueOne(store, { queue: 'other' });
    const scheduled = await enqueueOne(store, { delayMs: HOUR });
    const retrying = await startOne(store);
    await settleOne(store, retrying, retryIn(HOUR));
    const ids = [ready, scheduled, retrying.id];
    assert.deepEqual(
      await store.cancel(ids),
      ids.map((id) => ({ id, result: 'cancelled' })),
    );
    for (const job of await store.get(ids)) {
      assert.equal(job.state, 'cancelled');
      assert.notEqual(job.finishedAt, null);
      assert.equal(job.cancelRequested, false);
    }
    await advance(2 * HOUR);
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'a cancel of a waiting job writes no run to the ledger': async ({ store }) => {
    const id = await enqueueOne(store);
    await store.cancel([id]);
    assert.deepEqual(await store.runs(id), []);
  },

  'a running job is asked to stop and keeps its lease': async ({ store }) => {
    const job = await startOne(store);
    assert.deepEqual(await store.cancel([job.id]), [{ id: job.id, result: 'cancelling' }]);
    assert.partialDeepStrictEqual(await jobOf(store, job.id), {
      state: 'running',
      cancelRequested: true,
      worker: job.worker,
      leaseEndsAt: job.leaseEndsAt,
    });
    await settleOne(store, job, cancelNow);
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { state: 'cancelled', cancelRequested: false });
  },

  'a job that ended before it heard of the cancel has ended that way': async ({ store }) => {
    for (const [decision, state] of [
      [complete, 'completed'],
      [die(), 'dead'],
    ] as const) {
      const job = await startOne(store);
      await store.cancel([job.id]);
      await settleOne(store, job, decision);
      assert.partialDeepStrictEqual(await jobOf(store, job.id), { state, cancelRequested: false });
    }
  },

  'a cancel that came between decision and settlement ends the job there': async ({ store, advance }) => {
    const decisions: Decision[] = [
      retryIn(0),
      retryIn(HOUR),
      giveBack('snooze', HOUR),
      giveBack('release'),
      giveBack('defer', HOUR),
    ];
    for (const decision of decisions) {
      const job = await startOne(store);
      await store.cancel([job.id]);
      assert.deepEqual(await store.settle([settlement(job, decision)]), ['cancelled']);
      const ended = await jobOf(store, job.id);
      assert.partialDeepStrictEqual(ended, { state: 'cancelled', cancelRequested: false, worker: null });
      assert.notEqual(ended.finishedAt, null);
      assert.equal(ended.attempts, decision.kind === 'retry' ? 1 : 0);
      const record = only(await store.runs(job.id));
      assert.deepEqual(record.decision, decision);
      assert.equal(record.nextDueAt, null);
      await assertUntouched(store, job.id, () => settleOne(store, job, decision));
    }
    await advance(2 * HOUR);
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'only what would have waited again is answered cancelled, whatever is beside it': async ({ store }) => {
    await store.enqueue(newJobs(4));
    const { jobs } = await claim(store);
    const [a, b, c, d] = jobs;
    assert.ok(a && b && c && d);
    await store.cancel([a.id, b.id, d.id]);
    const answers = await store.settle([
      settlement(a, cancelNow),
      settlement(b, retryIn(HOUR)),
      settlement(c, retryIn(HOUR)),
      settlement(d, retryIn(HOUR), { worker: 'worker-2' }),
    ]);
    assert.deepEqual(answers, ['settled', 'cancelled', 'settled', 'stale']);
  },

  'a cancelled job that crashes is not run again': async ({ store, advance }) => {
    const job = await startOne(store);
    await store.cancel([job.id]);
    await advance(2 * LEASE);
    assert.deepEqual(await store.settle([crash(job)]), ['cancelled']);
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { state: 'cancelled', crashes: 1 });
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'a job that has ended, or never was, is left alone': async ({ store }) => {
    const done = await startOne(store);
    await settleOne(store, done, complete);
    const dead = await bury(store);
    await assertUntouched(store, dead, async () => {
      assert.deepEqual(await store.cancel([done.id, dead, 'unknown']), [
        { id: done.id, result: 'already-ended' },
        { id: dead, result: 'already-ended' },
        { id: 'unknown', result: 'not-found' },
      ]);
    });
  },

  'a cancel may be sent again': async ({ store }) => {
    const waiting = await enqueueOne(store, { queue: 'other' });
    const running = await startOne(store);
    await store.cancel([waiting, running.id]);
    await assertUntouched(store, waiting, async () => {
      assert.deepEqual(await store.cancel([waiting, running.id]), [
        { id: waiting, result: 'already-ended' },
        { id: running.id, result: 'cancelling' },
      ]);
    });
    assert.deepEqual(await store.cancel([]), []);
  },

  'a cancelled job in the middle of a backlog leaves the others in order': async ({ store }) => {
    const jobs = newJobs(50);
    await store.enqueue(jobs);
    const gone = new Set(jobs.filter((_, index) => index % 3 === 1).map((job) => job.id));
    await store.cancel([...gone]);
    const taken = (await claim(store)).jobs.map((job) => job.id);
    assert.deepEqual(
      taken,
      jobs.map((job) => job.id).filter((id) => !gone.has(id)),
    );
  },

  'of a cancel and a claim at once both are heard': async ({ store }) => {
    const id = await enqueueOne(store);
    const [answers, { jobs }] = await Promise.all([store.cancel([id]), claim(store)]);
    const { state } = await jobOf(store, id);
    if (only(answers).result === 'cancelled') assert.deepEqual([state, jobs.length], ['cancelled', 0]);
    else assert.deepEqual([state, only(answers).result, jobs.length], ['running', 'cancelling', 1]);
  },

  'of a cancel and a settlement at once neither leaves the job waiting': async ({ store }) => {
    const job = await startOne(store);
    await Promise.all([store.settle([settlement(job, retryIn(HOUR))]), store.cancel([job.id])]);
    assert.equal((await jobOf(store, job.id)).state, 'cancelled');
    await enqueueOne(store);
    assert.notEqual((await claimOne(store)).id, job.id);
  },
});
