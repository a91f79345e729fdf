import assert from 'node:assert/strict';
import type { RetryPolicy } from '../../retry/policy.ts';
import {
  assertUntouched,
  claim,
  complete,
  discard,
  enqueueOne,
  HOUR,
  hostileTexts,
  idsOf,
  jobOf,
  MINUTE,
  newJob,
  newJobs,
  only,
  policy,
  quota,
  redrive,
  settleOne,
  startOne,
  timeOf,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const putting: StoreCase[] = cases('enqueue', {
  'a payload with line breaks is refused, with all that came with it': async ({ store }) => {
    const jobs = [newJob(), newJob({ payload: '{\n"to": "b@example.com"\n}' })];
    await assert.rejects(store.enqueue(jobs), { code: 'CONFIG', message: /payload: expected JSON as JSON.stringify/ });
    assert.deepEqual(await store.get(idsOf(jobs)), []);
  },

  'a job that nothing delays is ready at once': async ({ store }) => {
    const job = newJob();
    assert.deepEqual(await store.enqueue([job]), [{ id: job.id, existed: false }]);
    const { enqueuedAt, dueAt, ...rest } = await jobOf(store, job.id);
    assert.equal(dueAt, enqueuedAt);
    assert.deepEqual(rest, {
      id: job.id,
      name: 'email.send',
      queue: 'default',
      state: 'ready',
      lane: 'fresh',
      priority: 5,
      payload: { to: 'a@example.com' },
      key: null,
      tags: [],
      trace: null,
      resource: null,
      limits: [],
      policy,
      version: null,
      runs: 0,
      attempts: 0,
      crashes: 0,
      firstStartedAt: null,
      finishedAt: null,
      leaseEndsAt: null,
      worker: null,
      deadReason: null,
      lastError: null,
      progress: null,
      result: null,
      resultError: null,
      cancelRequested: false,
    });
  },

  'jobs of a large batch that are alike but for their payloads keep their own, and their order': async ({ store }) => {
    const jobs = Array.from({ length: 40 }, (_, n) => newJob({ payload: `{"n":${n}}` }));
    await store.enqueue(jobs);
    const { jobs: claimed } = await claim(store, { limit: 40, queues: [quota({ share: 40 })] });
    assert.deepEqual(
      claimed.map(({ id, payload }) => [id, payload]),
      jobs.map(({ id, payload }) => [id, payload]),
    );
  },

  'of a large batch, some of which were sent before, the others are added': async ({ store }) => {
    const jobs = newJobs(40);
    await store.enqueue(jobs.filter((_, n) => n % 3 === 0));
    assert.deepEqual(
      await store.enqueue(jobs),
      jobs.map(({ id }) => ({ id, existed: false })),
    );
    assert.equal((await store.get(idsOf(jobs))).length, 40);
    assert.equal(only((await store.stats()).rows).totals.enqueued, 40);
  },

  'a large batch of jobs that want one key is one job': async ({ store }) => {
    const jobs = newJobs(40, { key: 'only-one' });
    const first = jobs[0]?.id as string;
    assert.deepEqual(
      await store.enqueue(jobs),
      jobs.map(({ id }) => ({ id: first, existed: id !== first })),
    );
    assert.deepEqual(idsOf(await store.get(idsOf(jobs))), [first]);
  },

  'a delayed job is scheduled and becomes ready by time alone': async ({ store, advance }) => {
    const id = await enqueueOne(store, { delayMs: 5 * MINUTE });
    const job = await jobOf(store, id);
    assert.equal(job.state, 'scheduled');
    assert.equal(job.dueAt - job.enqueuedAt, 5 * MINUTE);
    await advance(5 * MINUTE);
    assert.equal((await jobOf(store, id)).state, 'ready');
  },

  'a due time wins over a delay': async ({ store }) => {
    const dueAt = (await timeOf(store)) + HOUR;
    const job = await jobOf(store, await enqueueOne(store, { dueAt, delayMs: 5 }));
    assert.equal(job.dueAt, dueAt);
    assert.equal(job.state, 'scheduled');
  },

  'a due time in the past is kept, and the job is ready': async ({ store }) => {
    const dueAt = (await timeOf(store)) - HOUR;
    const job = await jobOf(store, await enqueueOne(store, { dueAt }));
    assert.equal(job.dueAt, dueAt);
    assert.equal(job.state, 'ready');
  },

  'a job is read back with all it was enqueued with': async ({ store }) => {
    const given = {
      name: 'report.build',
      queue: 'slow',
      resource: 's3',
      priority: 0,
      key: 'report-7',
      policy: {
        maxAttempts: 9,
        backoff: { kind: 'table', delaysMs: [1, 22, 333] },
        jitter: { spread: 0.2 },
        deadlineMs: HOUR,
        maxCrashes: 1,
        maxRuns: 70,
      },
    } as const;
    assert.partialDeepStrictEqual(await jobOf(store, await enqueueOne(store, given)), given);
  },

  'an empty batch is answered with an empty one': async ({ store }) => {
    assert.deepEqual(await store.enqueue([]), []);
  },

  'what the caller changes after enqueue stays outside': async ({ store }) => {
    const mutable = { ...structuredClone(policy) } as { -readonly [K in keyof RetryPolicy]: RetryPolicy[K] };
    const id = await enqueueOne(store, { policy: mutable });
    mutable.maxAttempts = 99;
    assert.equal((await jobOf(store, id)).policy.maxAttempts, policy.maxAttempts);
  },

  'a batch of 5,000 jobs is stored whole and answered in order': async ({ store }) => {
    const jobs = newJobs(5_000);
    const answers = await store.enqueue(jobs);
    assert.deepEqual(idsOf(answers), idsOf(jobs));
    assert.equal(only((await store.stats()).rows).states.ready, 5_000);
  },

  'concurrent batches all arrive': async ({ store }) => {
    const batches = Array.from({ length: 20 }, () => newJobs(10));
    const answers = await Promise.all(batches.map((batch) => store.enqueue(batch)));
    assert.deepEqual(answers.map(idsOf), batches.map(idsOf));
    assert.equal((await store.list({ limit: 1_000 })).length, 200);
  },
});

const replaying: StoreCase[] = cases('enqueue', {
  'a job sent again under its id changes nothing': async ({ store, advance }) => {
    const job = newJob({ key: 'once' });
    await store.enqueue([job]);
    await advance(MINUTE);
    await assertUntouched(store, job.id, async () => {
      const again = newJob({ id: job.id, name: 'other', queue: 'other', payload: '2', delayMs: HOUR });
      assert.deepEqual(await store.enqueue([job, again]), [
        { id: job.id, existed: false },
        { id: job.id, existed: false },
      ]);
    });
    assert.equal((await store.list({ limit: 10 })).length, 1);
  },

  'a running or finished job sent again is left alone': async ({ store }) => {
    const job = newJob();
    await store.enqueue([job]);
    const claimed = only((await claim(store)).jobs);
    await assertUntouched(store, job.id, () => store.enqueue([job]));
    await settleOne(store, claimed, complete);
    await assertUntouched(store, job.id, () => store.enqueue([job]));
    assert.equal((await claim(store)).jobs.length, 0);
  },

  'the same id twice in one batch is one job': async ({ store }) => {
    const job = newJob();
    const answers = await store.enqueue([job, job]);
    assert.deepEqual(answers, [
      { id: job.id, existed: false },
      { id: job.id, existed: false },
    ]);
    assert.equal((await claim(store)).jobs.length, 1);
  },

  'the same id sent by many callers at once is one job': async ({ store }) => {
    const job = newJob({ key: 'k' });
    const answers = await Promise.all(Array.from({ length: 20 }, () => store.enqueue([job])));
    for (const answer of answers) assert.deepEqual(answer, [{ id: job.id, existed: false }]);
    assert.equal((await store.list({ limit: 100 })).length, 1);
  },
});

const carrying: StoreCase[] = cases('enqueue', {
  'a payload comes back as it was, whatever JSON can carry': async ({ store }) => {
    const payloads = [
      null,
      false,
      0,
      '',
      [],
      {},
      [[[[1]]], { a: { b: [null, { c: '' }] } }],
      { emoji: '👩‍👩‍👧 e\u0301', nul: '\u0000', lone: '\ud800', quotes: `'"\`\\`, '': 'empty name', ' ': 1 },
      [0.1, -1.5e-10, 1e300, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER],
      { z: 1, a: 2, 10: 3, null: null, __proto: { constructor: 1 } },
    ];
    const ids = await Promise.all(payloads.map((payload) => enqueueOne(store, { payload: JSON.stringify(payload) })));
    assert.deepEqual(
      (await store.get(ids)).map((job) => job.payload),
      payloads,
    );
    const claimed = new Map((await claim(store)).jobs.map((job) => [job.id, JSON.parse(job.payload)]));
    assert.deepEqual(
      ids.map((id) => claimed.get(id)),
      payloads,
    );
  },

  'a payload of a million characters comes back whole': async ({ store }) => {
    const payload = JSON.stringify({ text: 'päyløad '.repeat(125_000) });
    const job = await startOne(store, { payload });
    assert.deepEqual(JSON.parse(job.payload), JSON.parse(payload));
  },

  'names, queues, keys and resources may hold any text': async ({ store }) => {
    for (const text of hostileTexts) {
      const id = await enqueueOne(store, { name: text, queue: text, key: text, resource: text });
      assert.partialDeepStrictEqual(await jobOf(store, id), { name: text, queue: text, key: text, resource: text });
      assert.deepEqual(idsOf(await store.list({ limit: 10, name: text, queue: text, key: text })), [id]);
      assert.deepEqual(await store.enqueue([newJob({ name: text, key: text })]), [{ id, existed: true }]);
      assert.deepEqual(idsOf((await claim(store, { queues: [quota({ queue: text })] })).jobs), [id]);
    }
  },

  'whatever is no id is the id of no job': async ({ store }) => {
    await store.enqueue(newJobs(2));
    assert.deepEqual(await store.get(hostileTexts), []);
    assert.deepEqual(await store.runs(hostileTexts[0] as string), []);
    assert.deepEqual([...(await store.recall(hostileTexts[1] as string))], []);
    const cancelled = await store.cancel(hostileTexts);
    assert.deepEqual(new Set(cancelled.map(({ result }) => result)), new Set(['not-found']));
    const redriven = await redrive(store, { ids: hostileTexts });
    assert.deepEqual(redriven, { ids: [], skipped: [] });
    assert.deepEqual(await discard(store, { ids: hostileTexts }), []);
  },
});

export const enqueueCases: readonly StoreCase[] = [...putting, ...replaying, ...carrying];
