import assert from 'node:assert/strict';
import { type Decision, deadReasons } from '../../retry/decision.ts';
import type { ClaimedJob, Settlement } from '../store.ts';
import {
  claim,
  claimOne,
  complete,
  die,
  giveBack,
  HOUR,
  hostileTexts,
  jobOf,
  MINUTE,
  newJobs,
  only,
  quota,
  retryIn,
  settlement,
  settleOne,
  startOne,
  storedError,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const ending: StoreCase[] = cases('settle', {
  'a completed job is done and its lease is over': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, complete);
    const ended = await jobOf(store, job.id);
    assert.partialDeepStrictEqual(ended, { state: 'completed', runs: 1, attempts: 1, crashes: 0, deadReason: null });
    assert.partialDeepStrictEqual(ended, { worker: null, leaseEndsAt: null, lastError: null });
    assert.ok((ended.finishedAt ?? 0) >= job.claimedAt);
    assert.equal(ended.dueAt, job.dueAt);
  },

  'a dead job keeps its reason and its last error': async ({ store }) => {
    for (const reason of deadReasons) {
      const job = await startOne(store);
      await settleOne(store, job, die(reason), { error: storedError(reason) });
      const dead = await jobOf(store, job.id);
      assert.partialDeepStrictEqual(dead, { state: 'dead', deadReason: reason, attempts: 1, worker: null });
      assert.deepEqual(dead.lastError, storedError(reason));
      assert.notEqual(dead.finishedAt, null);
    }
  },

  'a death that does not count gives the attempt back': async ({ store }) => {
    const job = await startOne(store);
    const decision: Decision = { kind: 'dead', reason: 'no-handler', counted: false, rule: 'no-handler' };
    await settleOne(store, job, decision, { outcome: 'released' });
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { state: 'dead', runs: 1, attempts: 0 });
    assert.equal(only(await store.runs(job.id)).counted, false);
  },

  'a job cancelled by its worker has ended': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, { kind: 'cancel', counted: true, rule: 'thrown:Cancel' });
    const ended = await jobOf(store, job.id);
    assert.partialDeepStrictEqual(ended, { state: 'cancelled', attempts: 1, worker: null, leaseEndsAt: null });
    assert.notEqual(ended.finishedAt, null);
  },
});

const goingOn: StoreCase[] = cases('settle', {
  'a retried job waits out its delay in the retry lane': async ({ store, advance }) => {
    const job = await startOne(store);
    await settleOne(store, job, retryIn(HOUR));
    const waiting = await jobOf(store, job.id);
    assert.partialDeepStrictEqual(waiting, {
      state: 'retrying',
      lane: 'retry',
      runs: 1,
      attempts: 1,
      finishedAt: null,
    });
    assert.partialDeepStrictEqual(waiting, { worker: null, leaseEndsAt: null, lastError: storedError('no luck') });
    assert.ok(waiting.dueAt >= job.claimedAt + HOUR);
    assert.deepEqual((await claim(store)).jobs, []);
    await advance(HOUR);
    assert.equal((await jobOf(store, job.id)).state, 'ready');
    assert.equal((await claimOne(store)).id, job.id);
  },

  'the next due time is reckoned from the store, not from what the worker says': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(MINUTE);
    await settleOne(store, job, retryIn(HOUR), { startedAt: 1, endedAt: 2 });
    assert.ok((await jobOf(store, job.id)).dueAt >= job.claimedAt + MINUTE + HOUR);
    assert.partialDeepStrictEqual(only(await store.runs(job.id)), { startedAt: 1, endedAt: 2 });
  },

  'a retry without delay can be claimed at once': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, retryIn(0));
    assert.equal((await jobOf(store, job.id)).state, 'ready');
    assert.partialDeepStrictEqual(await claimOne(store), { id: job.id, run: 2, attempts: 2, previousDelayMs: 0 });
  },

  'snoozed, released and deferred runs give the attempt back': async ({ store, advance }) => {
    for (const kind of ['snooze', 'release', 'defer'] as const) {
      const job = await startOne(store, { queue: kind });
      await settleOne(store, job, giveBack(kind, HOUR));
      const waits = kind === 'defer' ? { state: 'retrying', lane: 'retry' } : { state: 'scheduled', lane: 'fresh' };
      assert.partialDeepStrictEqual(await jobOf(store, job.id), { ...waits, runs: 1, attempts: 0 });
      assert.equal(only(await store.runs(job.id)).counted, false);
      await advance(HOUR);
      const again = await claimOne(store, { queues: [quota({ queue: kind })] });
      assert.partialDeepStrictEqual(again, { id: job.id, run: 2, attempts: 1 });
    }
  },

  'a job given back without delay is ready at once': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, giveBack('release'));
    assert.equal((await jobOf(store, job.id)).state, 'ready');
  },

  'runs rise through every refund, and attempts never fall below zero': async ({ store }) => {
    let job = await startOne(store);
    for (let run = 1; run <= 10; run++) {
      assert.partialDeepStrictEqual(job, { run, attempts: 1 });
      await settleOne(store, job, giveBack('release'));
      assert.partialDeepStrictEqual(await jobOf(store, job.id), { runs: run, attempts: 0 });
      job = await claimOne(store);
    }
  },

  'a job remembers its runs that did not count, and since when it is deferred': async ({ store, advance }) => {
    let job = await startOne(store);
    const after = async (decision: Decision): Promise<Pick<ClaimedJob, 'givenBack' | 'deferredSince' | 'snoozes'>> => {
      await settleOne(store, job, decision);
      await advance(MINUTE);
      job = await claimOne(store);
      const { givenBack, deferredSince, snoozes } = job;
      return { givenBack, deferredSince, snoozes };
    };
    assert.partialDeepStrictEqual(job, { givenBack: 0, deferredSince: null, snoozes: 0 });
    assert.deepEqual(await after(giveBack('snooze')), { givenBack: 0, deferredSince: null, snoozes: 1 });
    assert.deepEqual(await after(giveBack('release')), { givenBack: 1, deferredSince: null, snoozes: 1 });
    assert.deepEqual(await after(giveBack('snooze')), { givenBack: 1, deferredSince: null, snoozes: 2 });
    const before = job.claimedAt;
    const { deferredSince, ...deferred } = await after(giveBack('defer'));
    assert.deepEqual(deferred, { givenBack: 2, snoozes: 0 });
    assert.ok(deferredSince !== null && deferredSince >= before && deferredSince < job.claimedAt);
    assert.deepEqual(await after(giveBack('defer')), { givenBack: 3, deferredSince, snoozes: 0 });
    assert.deepEqual(await after(retryIn(0)), { givenBack: 3, deferredSince, snoozes: 0 });
    assert.deepEqual(await after(giveBack('snooze')), { givenBack: 3, deferredSince: null, snoozes: 1 });
  },

  'retries move to the retry queue when there is one': async ({ store }) => {
    const job = await startOne(store, { queue: 'mail', retryQueue: 'mail.retry' });
    await settleOne(store, job, retryIn(0));
    assert.equal((await jobOf(store, job.id)).queue, 'mail.retry');
    assert.deepEqual((await claim(store, { queues: [quota({ queue: 'mail' })] })).jobs, []);
    const again = await claimOne(store, { queues: [quota({ queue: 'mail.retry' })] });
    assert.partialDeepStrictEqual(again, { id: job.id, queue: 'mail.retry', lane: 'retry' });
  },

  'a job given back stays in its queue even when it has a retry queue': async ({ store }) => {
    const job = await startOne(store, { queue: 'mail', retryQueue: 'mail.retry' });
    await settleOne(store, job, giveBack('snooze'));
    assert.equal((await jobOf(store, job.id)).queue, 'mail');
  },

  'a retry remembers its delay, and a refund leaves it alone': async ({ store, advance }) => {
    const first = await startOne(store);
    await settleOne(store, first, retryIn(7 * MINUTE));
    await advance(HOUR);
    const second = await claimOne(store);
    assert.equal(second.previousDelayMs, 7 * MINUTE);
    await settleOne(store, second, giveBack('snooze', 3 * MINUTE));
    await advance(HOUR);
    assert.equal((await claimOne(store)).previousDelayMs, 7 * MINUTE);
  },

  'the last error stays until a newer one comes': async ({ store }) => {
    const first = await startOne(store);
    await settleOne(store, first, retryIn(0), { error: storedError('first') });
    await settleOne(store, await claimOne(store), giveBack('release'));
    const third = await claimOne(store);
    assert.deepEqual(third.lastError, storedError('first'));
    await settleOne(store, third, retryIn(0), { error: storedError('third') });
    await settleOne(store, await claimOne(store), complete);
    assert.deepEqual((await jobOf(store, first.id)).lastError, storedError('third'));
  },
});

const recording: StoreCase[] = cases('settle', {
  'each run is written to the ledger with its decision': async ({ store }) => {
    const job = await startOne(store);
    const decision: Decision = { ...retryIn(HOUR), rule: 'http:503', note: 'backoff threw' };
    const error = { ...storedError('down'), issues: [{ message: 'bad', path: 'a.b' }] };
    await settleOne(store, job, decision, { error });
    assert.deepEqual(await store.runs(job.id), [
      {
        jobId: job.id,
        run: 1,
        attempt: 1,
        outcome: 'failed',
        counted: true,
        worker: job.worker,
        startedAt: job.claimedAt,
        endedAt: job.claimedAt + 5,
        error,
        decision,
        nextDueAt: (await jobOf(store, job.id)).dueAt,
      },
    ]);
  },

  'the ledger lists runs oldest first, with the attempt each was': async ({ store }) => {
    const decisions = [retryIn(0), giveBack('release'), retryIn(0), complete];
    let job = await startOne(store);
    for (const decision of decisions) {
      await settleOne(store, job, decision);
      if (decision !== complete) job = await claimOne(store);
    }
    const ledger = (await store.runs(job.id)).map(({ run, attempt, counted, outcome }) => [
      run,
      attempt,
      counted,
      outcome,
    ]);
    assert.deepEqual(ledger, [
      [1, 1, true, 'failed'],
      [2, 2, false, 'released'],
      [3, 2, true, 'failed'],
      [4, 3, true, 'completed'],
    ]);
    assert.equal((await store.runs(job.id)).at(-1)?.nextDueAt, null);
  },

  'errors and workers may hold any text': async ({ store }) => {
    for (const text of hostileTexts) {
      await store.enqueue(newJobs(1, { queue: text }));
      const job = await claimOne(store, { worker: text, queues: [quota({ queue: text })] });
      const error = { name: text, message: text, code: text, status: null, stack: text };
      await settleOne(store, job, { ...die(), rule: text, note: text }, { error });
      assert.deepEqual((await jobOf(store, job.id)).lastError, error);
      assert.partialDeepStrictEqual(only(await store.runs(job.id)), { worker: text, error, decision: { note: text } });
    }
  },

  'of many completions in one batch, those of lost runs change nothing, and the others keep what is their own': async ({
    store,
  }) => {
    await store.enqueue(newJobs(50));
    const { jobs } = await claim(store, { limit: 50 });
    const settlements = jobs.map((job, n) =>
      settlement(job, complete, { startedAt: n, endedAt: 2 * n, result: `${n}` }),
    );
    const stale = [3, 20, 49];
    for (const n of stale) settlements[n] = { ...(settlements[n] as Settlement), run: 2 };
    const noted = { ...complete, note: 'its own' };
    settlements[7] = { ...(settlements[7] as Settlement), decision: noted };
    const answers = await store.settle(settlements);
    assert.deepEqual(
      answers.flatMap((answer, n) => (answer === 'stale' ? [n] : [])),
      stale,
    );
    for (const [n, { id }] of jobs.entries()) {
      if (stale.includes(n)) assert.equal((await jobOf(store, id)).state, 'running');
      else {
        const run = only(await store.runs(id));
        assert.partialDeepStrictEqual(run, {
          run: 1,
          attempt: 1,
          outcome: 'completed',
          counted: true,
          worker: 'worker-1',
        });
        assert.partialDeepStrictEqual(run, { startedAt: n, endedAt: 2 * n, decision: n === 7 ? noted : complete });
        assert.partialDeepStrictEqual(await jobOf(store, id), { state: 'completed', result: n });
      }
    }
    assert.deepEqual(await store.settle(settlements), answers);
  },

  'a batch of 1,000 settlements is written whole': async ({ store }) => {
    await store.enqueue(newJobs(1_000));
    const { jobs } = await claim(store, { limit: 1_000 });
    const answers = await store.settle(jobs.map((job) => settlement(job, complete)));
    assert.ok(answers.length === 1_000 && answers.every((answer) => answer === 'settled'));
    assert.equal(only((await store.stats()).rows).states.completed, 1_000);
  },
});

export const settleCases: readonly StoreCase[] = [...ending, ...goingOn, ...recording];
