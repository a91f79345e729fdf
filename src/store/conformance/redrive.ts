import assert from 'node:assert/strict';
import type { JobSelection } from '../store.ts';
import {
  assertUntouched,
  bury,
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
  newJob,
  only,
  policy,
  quota,
  redrive,
  retryIn,
  settleOne,
  startOne,
  storedError,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const keep = { keepAttempts: true } as const;

const bringing: StoreCase[] = cases('redrive', {
  'a dead job comes back ready, with all its attempts': async ({ store, advance }) => {
    const first = await startOne(store);
    await settleOne(store, first, retryIn(MINUTE));
    await advance(HOUR);
    await settleOne(store, await claimOne(store), die(), { error: storedError('last') });
    await advance(HOUR);
    assert.deepEqual(await redrive(store, { ids: [first.id] }), { ids: [first.id], skipped: [] });
    const back = await jobOf(store, first.id);
    assert.partialDeepStrictEqual(back, { state: 'ready', lane: 'redrive', runs: 2, attempts: 0, crashes: 0 });
    assert.partialDeepStrictEqual(back, { deadReason: null, finishedAt: null, firstStartedAt: null });
    assert.deepEqual(back.lastError, storedError('last'));
    assert.ok(back.dueAt >= first.claimedAt + 2 * HOUR);
    const claimed = await claimOne(store);
    assert.partialDeepStrictEqual(claimed, { dueAt: back.dueAt, availableAt: back.dueAt, previousDelayMs: null });
  },

  'a redriven job runs on as the next run of its ledger': async ({ store }) => {
    const id = await bury(store);
    await redrive(store, { ids: [id] });
    const { jobs, now } = await claim(store);
    const job = only(jobs);
    assert.partialDeepStrictEqual(job, { id, run: 2, attempts: 1, lane: 'redrive', firstStartedAt: now });
    await settleOne(store, job, complete);
    assert.deepEqual(
      (await store.runs(id)).map((record) => [record.run, record.attempt]),
      [
        [1, 1],
        [2, 1],
      ],
    );
  },

  'attempts that are kept go on from what was spent': async ({ store, advance }) => {
    const job = await startOne(store);
    await settleOne(store, job, retryIn(MINUTE));
    await advance(HOUR);
    await settleOne(store, await claimOne(store), die('unrecoverable'));
    await redrive(store, { ...keep, ids: [job.id] });
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { attempts: 2, firstStartedAt: null });
    assert.partialDeepStrictEqual(await claimOne(store), { attempts: 3, run: 3, previousDelayMs: MINUTE });
  },

  'a job whose attempts are spent has nothing left to keep': async ({ store }) => {
    const id = await bury(store, { policy: { ...policy, maxAttempts: 1 } });
    await assertUntouched(store, id, async () => {
      assert.deepEqual(await redrive(store, { ...keep, ids: [id] }), {
        ids: [],
        skipped: [{ id, why: 'nothing-left' }],
      });
    });
    assert.deepEqual((await redrive(store, { ids: [id] })).ids, [id]);
  },

  'attempts that no job can spend leave some to keep': async ({ store }) => {
    const id = await bury(store, { policy: { ...policy, maxAttempts: 2 ** 31, maxCrashes: 2 ** 31 } });
    assert.deepEqual((await redrive(store, { ...keep, ids: [id] })).ids, [id]);
  },

  'a poisonous job has no crashes left to keep, and gets them again by a reset': async ({ store, advance }) => {
    const job = await startOne(store, { policy: { ...policy, maxCrashes: 1 } });
    await advance(2 * LEASE);
    await store.settle([crash(job, die('poison'))]);
    assert.deepEqual((await redrive(store, { ...keep, ids: [job.id] })).skipped, [{ id: job.id, why: 'nothing-left' }]);
    await redrive(store, { ids: [job.id] });
    assert.equal((await jobOf(store, job.id)).crashes, 0);
  },

  'a redriven job has all its runs again, whether it keeps its attempts or not': async ({ store }) => {
    for (const more of [{}, keep]) {
      const job = await startOne(store);
      await settleOne(store, job, giveBack('defer'));
      await settleOne(store, await claimOne(store), giveBack('snooze'));
      await settleOne(store, await claimOne(store), die('runs'));
      await redrive(store, { ...more, ids: [job.id] });
      assert.partialDeepStrictEqual(await claimOne(store), { givenBack: 0, deferredSince: null, snoozes: 0 });
    }
  },

  'a redriven job goes home from its retry queue': async ({ store }) => {
    const job = await startOne(store, { queue: 'mail', retryQueue: 'mail.retry' });
    await settleOne(store, job, retryIn(0));
    await settleOne(store, await claimOne(store, { queues: [quota({ queue: 'mail.retry' })] }), die());
    assert.equal((await jobOf(store, job.id)).queue, 'mail.retry');
    assert.deepEqual((await redrive(store, { queue: 'mail.retry' })).ids, [job.id]);
    assert.equal((await claimOne(store, { queues: [quota({ queue: 'mail' })] })).id, job.id);
  },

  'a redriven job may die and be redriven again': async ({ store }) => {
    const id = await bury(store);
    for (let round = 1; round <= 3; round++) {
      assert.deepEqual((await redrive(store, { ids: [id] })).ids, [id]);
      await settleOne(store, await claimOne(store), die('deadline'));
    }
    assert.partialDeepStrictEqual(await jobOf(store, id), { state: 'dead', runs: 4, deadReason: 'deadline' });
  },
});

const selecting: StoreCase[] = cases('redrive', {
  'only dead jobs are redriven': async ({ store }) => {
    const waiting = await enqueueOne(store, { queue: 'other' });
    const running = await startOne(store);
    const done = await startOne(store);
    await settleOne(store, done, complete);
    const cancelled = await enqueueOne(store);
    await store.cancel([cancelled]);
    const answer = await redrive(store, { ids: [waiting, running.id, done.id, cancelled, 'unknown'] });
    assert.deepEqual(answer, { ids: [], skipped: [] });
    assert.equal((await jobOf(store, running.id)).state, 'running');
  },

  'conditions add up': async ({ store }) => {
    const wanted = await bury(store, { name: 'a', queue: 'x' }, 'poison');
    await bury(store, { name: 'b', queue: 'x' }, 'poison');
    await bury(store, { name: 'a', queue: 'y' }, 'poison');
    await bury(store, { name: 'a', queue: 'x' }, 'deadline');
    const answer = await redrive(store, { name: 'a', queue: 'x', reason: 'poison' });
    assert.deepEqual(answer.ids, [wanted]);
    assert.equal((await store.list({ state: 'dead', limit: 10 })).length, 3);
  },

  'each condition selects by itself': async ({ store }) => {
    const a = await bury(store, { name: 'a', queue: 'x' }, 'poison');
    const b = await bury(store, { name: 'b', queue: 'y' }, 'deadline');
    const selected = async (selection: JobSelection): Promise<string[]> =>
      idsOf(await store.list({ ...selection, state: 'dead', limit: 10 }));
    assert.deepEqual(await selected({ name: 'a' }), [a]);
    assert.deepEqual(await selected({ queue: 'y' }), [b]);
    assert.deepEqual(await selected({ reason: 'poison' }), [a]);
    assert.deepEqual(await selected({ ids: [b] }), [b]);
    assert.deepEqual(await selected({ ids: [] }), []);
    assert.deepEqual(await selected({ name: `' OR 1=1 --` }), []);
  },

  'the oldest dead go first, and the limit holds': async ({ store, advance }) => {
    const jobs = [await startOne(store), await startOne(store), await startOne(store)];
    const died: string[] = [];
    for (const job of jobs.toReversed()) {
      await settleOne(store, job, die());
      died.push(job.id);
      await advance(MINUTE);
    }
    assert.deepEqual((await redrive(store, { name: 'email.send', limit: 2 })).ids, died.slice(0, 2));
    assert.deepEqual((await redrive(store, { name: 'email.send' })).ids, died.slice(2));
  },

  'the limit bounds what is looked at, refused jobs included': async ({ store, advance }) => {
    const spent = await bury(store, { policy: { ...policy, maxAttempts: 1 } });
    await advance(MINUTE);
    await bury(store);
    const answer = await redrive(store, { ...keep, name: 'email.send', limit: 1 });
    assert.deepEqual(answer, { ids: [], skipped: [{ id: spent, why: 'nothing-left' }] });
  },

  'a redrive may be sent again': async ({ store }) => {
    const id = await bury(store);
    await redrive(store, { ids: [id] });
    await assertUntouched(store, id, async () => {
      assert.deepEqual(await redrive(store, { ids: [id] }), { ids: [], skipped: [] });
    });
  },

  'a job redriven by many callers at once comes back once': async ({ store }) => {
    const id = await bury(store);
    const answers = await Promise.all(Array.from({ length: 5 }, () => redrive(store, { ids: [id] })));
    assert.deepEqual(
      answers.flatMap((answer) => answer.ids),
      [id],
    );
    assert.equal((await claim(store)).jobs.length, 1);
  },
});

const keys: StoreCase[] = cases('redrive', {
  'a redriven job takes its key again': async ({ store }) => {
    const id = await bury(store, { key: 'k', keyLife: 'finished' });
    await redrive(store, { ids: [id] });
    assert.deepEqual(await store.enqueue([newJob({ key: 'k' })]), [{ id, existed: true }]);
  },

  'a job whose key went to another live job stays dead': async ({ store }) => {
    const id = await bury(store, { key: 'k', keyLife: 'finished' });
    const other = await enqueueOne(store, { key: 'k' });
    await assertUntouched(store, id, async () => {
      assert.deepEqual(await redrive(store, { ids: [id] }), { ids: [], skipped: [{ id, why: 'key-taken' }] });
    });
    await store.cancel([other]);
    assert.deepEqual((await redrive(store, { ids: [id] })).ids, [id]);
  },

  'the same key under another name does not stand in the way': async ({ store }) => {
    const id = await bury(store, { key: 'k' });
    await enqueueOne(store, { name: 'other', key: 'k', delayMs: HOUR });
    assert.deepEqual((await redrive(store, { ids: [id] })).ids, [id]);
  },

  'a key that another job gave up at its start is free to take back': async ({ store }) => {
    const id = await bury(store, { name: 'a', key: 'k', keyLife: 'finished' });
    const other = await startOne(store, { name: 'a', key: 'k', keyLife: 'started' });
    assert.deepEqual(await redrive(store, { ids: [id] }), { ids: [id], skipped: [] });
    const again = newJob({ name: 'a', key: 'k' });
    assert.deepEqual(await store.enqueue([again]), [{ id, existed: true }]);
    await settleOne(store, other, complete);
    assert.deepEqual(await store.enqueue([again]), [{ id, existed: true }]);
  },

  'a key is taken by name and key, wherever spaces are': async ({ store }) => {
    const ids = [await bury(store, { name: 'a b', key: 'c' }), await bury(store, { name: 'a', key: 'b c' })];
    assert.deepEqual((await redrive(store, { ids })).ids.toSorted(), ids.toSorted());
  },

  'of two dead jobs with one key only the older comes back': async ({ store, advance }) => {
    const older = await bury(store, { key: 'k' });
    await advance(MINUTE);
    const younger = await bury(store, { key: 'k' });
    const answer = { ids: [older], skipped: [{ id: younger, why: 'key-taken' }] };
    assert.deepEqual(await redrive(store, { name: 'email.send' }), answer);
  },

  'a key that lasts until the start is neither needed nor taken by a redrive': async ({ store }) => {
    const id = await bury(store, { key: 'k', keyLife: 'started' });
    const other = await enqueueOne(store, { key: 'k', delayMs: HOUR });
    assert.deepEqual((await redrive(store, { ids: [id] })).ids, [id]);
    await store.cancel([other]);
    assert.equal(only(await store.enqueue([newJob({ key: 'k' })])).existed, false);
  },

  'a job that needs no key any more takes none from another one': async ({ store, advance }) => {
    const started = await bury(store, { key: 'k', keyLife: 'started' });
    await advance(MINUTE);
    const finished = await bury(store, { key: 'k', keyLife: 'finished' });
    const answer = { ids: [started, finished], skipped: [] };
    assert.deepEqual(await redrive(store, { name: 'email.send' }), answer);
    assert.deepEqual(await store.enqueue([newJob({ key: 'k' })]), [{ id: finished, existed: true }]);
  },

  'a key that lasts as long as the row stays with the job through death and redrive': async ({ store }) => {
    const id = await bury(store, { key: 'k', keyLife: 'pruned' });
    assert.deepEqual((await redrive(store, { ids: [id] })).ids, [id]);
    await settleOne(store, await claimOne(store), complete);
    assert.deepEqual(await store.enqueue([newJob({ key: 'k' })]), [{ id, existed: true }]);
  },
});

export const redriveCases: readonly StoreCase[] = [...bringing, ...selecting, ...keys];
