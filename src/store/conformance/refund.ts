import assert from 'node:assert/strict';
import type { Spent } from '../../gate/index.ts';
import type { ClaimedJob, Refund, Store } from '../store.ts';
import {
  assertUntouched,
  cancelNow,
  claimOne,
  complete,
  crash,
  die,
  fenceOf,
  giveBack,
  jobOf,
  LEASE,
  only,
  redrive,
  retryIn,
  settlement,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const note: Spent = { at: 1_700_000_000_123, count: 2 };

/** A job that runs for the third time, after two failures that counted; it has a note of them. */
async function startThird(store: Store): Promise<ClaimedJob> {
  let job = await startOne(store);
  for (const count of [1, 2]) {
    await settleOne(store, job, retryIn(0), { refund: { attempts: 0, spent: { at: note.at, count } } });
    job = await claimOne(store);
  }
  assert.equal(job.attempts, 3);
  return job;
}

async function lastRun(store: Store, { id }: ClaimedJob) {
  return (await store.runs(id)).at(-1);
}

const both: Refund = { attempts: 2, spent: null };

export const refundCases: readonly StoreCase[] = cases('settle', {
  'a new job has no note of attempts that an outage may have cost': async ({ store }) => {
    assert.equal((await startOne(store)).spent, null);
  },

  'the note that a settlement leaves comes back with the next claim': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, retryIn(0), { refund: { attempts: 0, spent: note } });
    assert.partialDeepStrictEqual(await claimOne(store), { id: job.id, attempts: 2, spent: note });
  },

  'a settlement that says nothing of refunds leaves the note as it is': async ({ store }) => {
    const job = await startThird(store);
    await settleOne(store, job, retryIn(0));
    assert.deepEqual((await claimOne(store)).spent, note);
  },

  'the note comes back with an expired run': async ({ store, advance }) => {
    const job = await startThird(store);
    await advance(2 * LEASE);
    assert.partialDeepStrictEqual(only(await store.expired(10)), { id: job.id, attempts: 3, spent: note });
  },

  'a deferred run gives back its own attempt and those that are refunded': async ({ store }) => {
    const job = await startThird(store);
    await settleOne(store, job, giveBack('defer'), { refund: both });
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { attempts: 0, runs: 3, state: 'ready', lane: 'retry' });
    assert.partialDeepStrictEqual(await lastRun(store, job), { attempt: 1, outcome: 'deferred', counted: false });
    assert.partialDeepStrictEqual(await claimOne(store), { id: job.id, run: 4, attempts: 1, spent: null });
  },

  'a run that counts can give back the attempts before it': async ({ store }) => {
    const job = await startThird(store);
    await settleOne(store, job, retryIn(0), { refund: both });
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { attempts: 1, runs: 3 });
    assert.partialDeepStrictEqual(await lastRun(store, job), { attempt: 1, counted: true });
  },

  'the end of a job can give attempts back': async ({ store }) => {
    for (const [decision, attempts] of [
      [complete, 1],
      [die(), 1],
      [cancelNow, 1],
      [{ kind: 'dead', reason: 'deadline', counted: false, rule: 'deadline' }, 0],
    ] as const) {
      const job = await startThird(store);
      await settleOne(store, job, decision, { refund: both });
      assert.equal((await jobOf(store, job.id)).attempts, attempts);
      assert.equal((await lastRun(store, job))?.attempt, 1);
    }
  },

  'attempts never fall below zero, whatever is refunded': async ({ store }) => {
    const job = await startThird(store);
    await settleOne(store, job, giveBack('defer'), { refund: { attempts: 100, spent: null } });
    assert.equal((await jobOf(store, job.id)).attempts, 0);
    assert.equal((await claimOne(store)).attempts, 1);
  },

  'a settlement that is sent again refunds nothing again': async ({ store }) => {
    const job = await startThird(store);
    const sent = settlement(job, retryIn(0), { refund: { attempts: 1, spent: null } });
    assert.deepEqual(await store.settle([sent]), ['settled']);
    await assertUntouched(store, job.id, async () => {
      assert.deepEqual(await store.settle([sent, sent]), ['settled', 'settled']);
    });
    const next = await claimOne(store);
    assert.equal(next.attempts, 3);
    await store.settle([sent]);
    await settleOne(store, next, retryIn(0));
    assert.equal((await jobOf(store, job.id)).attempts, 3);
  },

  'of two settlements of one run in one batch, the first one refunds': async ({ store }) => {
    const job = await startThird(store);
    const sent = settlement(job, retryIn(0), { refund: { attempts: 1, spent: null } });
    assert.deepEqual(await store.settle([sent, sent]), ['settled', 'settled']);
    assert.equal((await jobOf(store, job.id)).attempts, 2);
  },

  'a settlement without the fence refunds nothing': async ({ store }) => {
    const job = await startThird(store);
    await assertUntouched(store, job.id, async () => {
      const late = settlement(job, retryIn(0), { worker: 'another', refund: both });
      assert.deepEqual(await store.settle([late, { ...late, worker: job.worker, run: 4 }]), ['stale', 'stale']);
    });
    await settleOne(store, job, retryIn(0));
    assert.partialDeepStrictEqual(await claimOne(store), { attempts: 4, spent: note });
  },

  'settlements with and without a refund can share a batch': async ({ store }) => {
    const [plain, refunded] = [await startThird(store), await startThird(store)];
    const batch = [settlement(plain, retryIn(0)), settlement(refunded, retryIn(0), { refund: both })];
    assert.deepEqual(await store.settle(batch), ['settled', 'settled']);
    assert.equal((await jobOf(store, plain.id)).attempts, 3);
    assert.equal((await jobOf(store, refunded.id)).attempts, 1);
  },

  'a crash can be settled with a refund': async ({ store, advance }) => {
    const job = await startThird(store);
    await advance(2 * LEASE);
    const [expired] = (await store.expired(10)) as [ClaimedJob];
    assert.deepEqual(await store.settle([{ ...crash(expired), refund: both }]), ['settled']);
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { attempts: 1, crashes: 1 });
  },

  'a job that was cancelled meanwhile is refunded all the same': async ({ store }) => {
    const job = await startThird(store);
    await store.cancel([job.id]);
    assert.deepEqual(await store.settle([settlement(job, giveBack('defer'), { refund: both })]), ['cancelled']);
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { state: 'cancelled', attempts: 0 });
  },

  'the statistics count a refunded run as the run that it was': async ({ store }) => {
    const job = await startThird(store);
    await settleOne(store, job, complete, { refund: both });
    const [row] = (await store.stats()).rows;
    assert.partialDeepStrictEqual(row?.totals, { retries: 2, successfulRetries: 1, runs: { completed: 1, failed: 2 } });
  },

  'a redrive that resets the attempts takes the note away, and one that keeps them leaves it': async ({ store }) => {
    for (const [attempts, spent] of [
      ['reset', null],
      ['keep', note],
    ] as const) {
      const job = await startThird(store);
      await settleOne(store, job, die());
      await redrive(store, { ids: [job.id], keepAttempts: attempts === 'keep' });
      const again = await claimOne(store);
      assert.deepEqual([again.id, again.spent], [job.id, spent]);
      await settleOne(store, again, complete);
    }
  },

  'a heartbeat leaves the note as it is': async ({ store, advance }) => {
    const job = await startThird(store);
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE, progress: '1' }]);
    await advance(2 * LEASE);
    assert.deepEqual(only(await store.expired(10)).spent, note);
  },
});
