import assert from 'node:assert/strict';
import {
  assertUntouched,
  claimOne,
  complete,
  crash,
  enqueueOne,
  fenceOf,
  HOUR,
  jobOf,
  LEASE,
  MINUTE,
  only,
  retryIn,
  settleOne,
  startOne,
  timeOf,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

export const heartbeatCases: readonly StoreCase[] = cases('heartbeat', {
  'a heartbeat extends the lease from now': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(MINUTE);
    const before = await timeOf(store);
    const answer = only(await store.heartbeat([{ ...fenceOf(job), leaseMs: HOUR }]));
    assert.ok(answer.kept);
    assert.ok(answer.leaseEndsAt >= before + HOUR && answer.leaseEndsAt <= (await timeOf(store)) + HOUR);
    assert.equal(answer.cancelRequested, false);
    assert.equal((await jobOf(store, job.id)).leaseEndsAt, answer.leaseEndsAt);
  },

  'a job with an extended lease is not expired at the end of the old one': async ({ store, advance }) => {
    const job = await startOne(store);
    await store.heartbeat([{ ...fenceOf(job), leaseMs: 3 * LEASE }]);
    await advance(2 * LEASE);
    assert.deepEqual(await store.expired(10), []);
    await advance(LEASE);
    assert.equal(only(await store.expired(10)).id, job.id);
  },

  'a heartbeat of another run or worker changes nothing': async ({ store }) => {
    const job = await startOne(store);
    await assertUntouched(store, job.id, async () => {
      const beats = [
        { ...fenceOf(job), worker: 'worker-2', leaseMs: HOUR, progress: '1' },
        { ...fenceOf(job), run: job.run + 1, leaseMs: HOUR, progress: '1' },
        { ...fenceOf(job), run: job.run - 1, leaseMs: HOUR, progress: '1' },
      ];
      assert.deepEqual(await store.heartbeat(beats), [{ kept: false }, { kept: false }, { kept: false }]);
    });
  },

  'a heartbeat for a job that waits, ended or never was is lost': async ({ store }) => {
    const waiting = await enqueueOne(store, { queue: 'other' });
    const retrying = await startOne(store);
    await settleOne(store, retrying, retryIn(HOUR));
    const ended = await startOne(store);
    await settleOne(store, ended, complete);
    const fences = [
      fenceOf(retrying),
      fenceOf(ended),
      { ...fenceOf(ended), id: waiting },
      { ...fenceOf(ended), id: '?' },
    ];
    const answers = await store.heartbeat(fences.map((fence) => ({ ...fence, leaseMs: HOUR })));
    assert.ok(answers.every((answer) => !answer.kept));
    assert.equal((await jobOf(store, retrying.id)).leaseEndsAt, null);
  },

  'a heartbeat of the run before the present one is lost': async ({ store }) => {
    const first = await startOne(store);
    await settleOne(store, first, retryIn(0));
    const second = await claimOne(store);
    assert.deepEqual(await store.heartbeat([{ ...fenceOf(first), leaseMs: HOUR }]), [{ kept: false }]);
    assert.equal(only(await store.heartbeat([{ ...fenceOf(second), leaseMs: HOUR }])).kept, true);
  },

  'a late heartbeat keeps a run that nobody has rescued': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(2 * LEASE);
    assert.equal(only(await store.expired(10)).id, job.id);
    assert.equal(only(await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE }])).kept, true);
    assert.deepEqual(await store.expired(10), []);
  },

  'a late heartbeat of a rescued run is lost': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(2 * LEASE);
    await store.settle([crash(job)]);
    assert.deepEqual(await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE }]), [{ kept: false }]);
  },

  'progress is stored, and left alone by a heartbeat without any': async ({ store }) => {
    const job = await startOne(store);
    const progress = { done: 3, of: 10, note: `it's "half" 👍` };
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE, progress: JSON.stringify(progress) }]);
    assert.deepEqual((await jobOf(store, job.id)).progress, progress);
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE }]);
    assert.deepEqual((await jobOf(store, job.id)).progress, progress);
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE, progress: 'null' }]);
    assert.equal((await jobOf(store, job.id)).progress, null);
  },

  'progress outlives its run': async ({ store }) => {
    const job = await startOne(store);
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE, progress: '"half"' }]);
    await settleOne(store, job, complete);
    assert.equal((await jobOf(store, job.id)).progress, 'half');
  },

  'a batch of heartbeats is answered in order, and a lost one stops no other': async ({ store }) => {
    const [a, b] = [await startOne(store), await startOne(store)];
    const answers = await store.heartbeat([
      { ...fenceOf(a), leaseMs: HOUR },
      { ...fenceOf(a), run: 99, leaseMs: HOUR },
      { ...fenceOf(b), leaseMs: HOUR },
    ]);
    assert.deepEqual(
      answers.map((answer) => answer.kept),
      [true, false, true],
    );
    for (const job of [a, b]) assert.ok(((await jobOf(store, job.id)).leaseEndsAt ?? 0) > job.leaseEndsAt);
    assert.deepEqual(await store.heartbeat([]), []);
  },

  'a heartbeat may be sent again': async ({ store }) => {
    const job = await startOne(store);
    const beat = { ...fenceOf(job), leaseMs: HOUR, progress: '1' };
    const answers = await Promise.all([
      store.heartbeat([beat]),
      store.heartbeat([beat]),
      store.heartbeat([beat, beat]),
    ]);
    assert.ok(answers.flat().every((answer) => answer.kept));
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { state: 'running', runs: 1, attempts: 1, progress: 1 });
  },

  'a heartbeat tells the worker that its job should stop': async ({ store }) => {
    const job = await startOne(store);
    await store.cancel([job.id]);
    const answer = only(await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE }]));
    assert.ok(answer.kept && answer.cancelRequested);
  },
});
