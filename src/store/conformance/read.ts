import assert from 'node:assert/strict';
import type { JobState } from '../../job.ts';
import { getAll, PAGE_BYTES, PAGE_VALUES } from '../page.ts';
import type { JobFilter, JobList, Store } from '../store.ts';
import {
  bury,
  claimOne,
  complete,
  enqueueOne,
  HOUR,
  idsOf,
  jobOf,
  MINUTE,
  newJob,
  newJobs,
  policy,
  quota,
  retryIn,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

async function listed(store: Store, filter: Partial<JobFilter> = {}): Promise<string[]> {
  return idsOf(await store.list({ limit: 100, ...filter }));
}

/** 40 jobs of 256 KiB: more than one answer carries. */
async function enqueueLarge(store: Store): Promise<string[]> {
  const jobs = newJobs(40, { payload: JSON.stringify('x'.repeat(PAGE_BYTES / 32 - 2)) });
  for (const job of jobs) await store.enqueue([job]);
  return idsOf(jobs);
}

/** 8 jobs of 100,000 empty lists: little text, and many times as much memory. */
async function enqueueManyValues(store: Store): Promise<string[]> {
  const jobs = newJobs(8, { payload: JSON.stringify(Array.from({ length: PAGE_VALUES / 5 }, () => [])) });
  for (const job of jobs) await store.enqueue([job]);
  return idsOf(jobs);
}

const getting: StoreCase[] = cases('get', {
  'jobs that carry more than an answer may come in several, in the order asked for': async ({ store }) => {
    for (const enqueue of [enqueueLarge, enqueueManyValues]) {
      const ids = await enqueue(store);
      const first = await store.get(['unknown', ...ids]);
      assert.ok(first.length > 1 && first.length < ids.length, `${first.length} jobs in one answer`);
      assert.equal(first.stoppedAfter, first.at(-1)?.id);
      const all: string[] = [];
      for await (const { id } of getAll(store, ['unknown', ...ids, 'gone'])) all.push(id);
      assert.deepEqual(all, ids);
    }
  },

  'jobs are answered in the order asked for, and unknown ones left out': async ({ store }) => {
    const jobs = newJobs(3);
    await store.enqueue(jobs);
    const [a, b, c] = idsOf(jobs) as [string, string, string];
    assert.deepEqual(idsOf(await store.get([c, 'unknown', a, b])), [c, a, b]);
    assert.deepEqual(await store.get([]), []);
    assert.deepEqual(await store.get(['unknown']), []);
  },

  '5,000 jobs can be asked for at once': async ({ store }) => {
    const jobs = newJobs(5_000);
    await store.enqueue(jobs);
    const asked = idsOf(jobs).reverse();
    assert.deepEqual(idsOf(await store.get(asked)), asked);
  },

  'what a caller changes in an answer stays outside': async ({ store }) => {
    const job = await startOne(store, { payload: '{"list":[1]}' });
    const answer = await jobOf(store, job.id);
    try {
      Object.assign(answer, { state: 'dead', runs: 99 });
      Object.assign(answer.policy, { maxAttempts: 99 });
      (answer.payload as { list: number[] }).list.push(2);
    } catch (error) {
      // An answer may be frozen; then there is nothing to leak.
      assert.ok(error instanceof TypeError);
    }
    const again = await jobOf(store, job.id);
    assert.partialDeepStrictEqual(again, { state: 'running', runs: 1, payload: { list: [1] } });
    assert.deepEqual(again.policy, policy);
  },
});

/** Thread messages and JSON.stringify run out of stack at some thousand levels; a parser reads any depth. */
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

const listing: StoreCase[] = cases('list', {
  'data too deep to be written again is shown as a note, and the jobs beside it as they are': async ({ store }) => {
    const deepest = '[JSON of more than 500 levels]';
    for (const levels of [501, 6_000, 20_000]) {
      const job = await startOne(store, { payload: deep(levels) });
      assert.equal(job.payload, deep(levels));
      await store.heartbeat([{ ...job, leaseMs: HOUR, progress: deep(levels) }]);
      await settleOne(store, job, complete, { result: deep(levels) });
      assert.partialDeepStrictEqual(await jobOf(store, job.id), { payload: deepest, progress: deepest, result: null });
    }
    const id = await enqueueOne(store, { payload: deep(500) });
    const found = await store.list({ limit: 10 });
    assert.equal(found.length, 4);
    assert.equal(JSON.stringify(found.find((job) => job.id === id)?.payload), deep(500));
  },

  'a list ends where its jobs carry as much as an answer may, and says where it goes on': async ({ store }) => {
    for (const enqueue of [enqueueLarge, enqueueManyValues]) {
      const ids = await enqueue(store);
      const seen: string[] = [];
      let pages = 0;
      for (let after: string | undefined; seen.length < ids.length; ) {
        pages++;
        const page: JobList = await store.list({ limit: 1_000, ...(after !== undefined && { after }) });
        const bytes = page.reduce((sum, { payload }) => sum + JSON.stringify(payload).length, 0);
        assert.ok(page.length > 0 && bytes <= PAGE_BYTES, `${page.length} jobs of ${bytes} bytes`);
        seen.push(...idsOf(page));
        after = page.stoppedAfter;
        if (after === undefined) break;
        assert.equal(after, page.at(-1)?.id);
      }
      assert.deepEqual(seen.slice(0, ids.length), ids.reverse());
      assert.ok(pages > 1);
    }
  },

  'a job that carries more than an answer may is listed alone, by whatever it is found': async ({ store }) => {
    const small = await enqueueOne(store, { queue: 'a', tags: ['t'] });
    const large = await enqueueOne(store, { payload: JSON.stringify('x'.repeat(PAGE_BYTES)), queue: 'a', tags: ['t'] });
    const last = await enqueueOne(store, { queue: 'a', tags: ['t'] });
    for (const filter of [{}, { queue: 'a' }, { tag: 't' }, { state: 'ready' as const }]) {
      const first = await store.list({ ...filter, limit: 10 });
      assert.deepEqual([idsOf(first), first.stoppedAfter], [[last], last]);
      const second = await store.list({ ...filter, limit: 10, after: last });
      assert.deepEqual([idsOf(second), second.stoppedAfter], [[large], large]);
      const third = await store.list({ ...filter, limit: 10, after: large });
      assert.deepEqual([idsOf(third), third.stoppedAfter], [[small], undefined]);
    }
    assert.deepEqual(idsOf(await store.get([large, small])), [large]);
  },

  'jobs are listed newest first, whenever they fall due': async ({ store }) => {
    const jobs = newJobs(10);
    await store.enqueue(jobs.slice(0, 5).map((job) => ({ ...job, delayMs: HOUR })));
    await store.enqueue(jobs.slice(5));
    assert.deepEqual(await listed(store), idsOf(jobs).reverse());
  },

  'pages continue where the last one ended, also when new jobs come in': async ({ store }) => {
    const jobs = newJobs(7);
    await store.enqueue(jobs);
    const newestFirst = idsOf(jobs).reverse();
    const first = await listed(store, { limit: 3 });
    assert.deepEqual(first, newestFirst.slice(0, 3));
    await enqueueOne(store);
    const second = await listed(store, { limit: 3, after: first.at(-1) as string });
    assert.deepEqual(second, newestFirst.slice(3, 6));
    assert.deepEqual(await listed(store, { limit: 3, after: second.at(-1) as string }), newestFirst.slice(6));
    assert.deepEqual(await listed(store, { limit: 3, after: newestFirst.at(-1) as string }), []);
  },

  'a page after an unknown job is empty': async ({ store }) => {
    await enqueueOne(store);
    assert.deepEqual(await listed(store, { after: 'unknown' }), []);
  },

  'a page may continue after a job that the filter leaves out': async ({ store }) => {
    const jobs = ['a', 'b', 'a'].map((name) => newJob({ name }));
    await store.enqueue(jobs);
    assert.deepEqual(await listed(store, { name: 'a', after: jobs[1]?.id as string }), [jobs[0]?.id]);
  },

  'filters add up': async ({ store }) => {
    const wanted = newJob({ name: 'a', queue: 'x', key: 'k' });
    const others = [
      newJob({ name: 'a', queue: 'x' }),
      newJob({ name: 'a', queue: 'y' }),
      newJob({ name: 'b', key: 'k' }),
    ];
    await store.enqueue([wanted, ...others]);
    assert.deepEqual(await listed(store, { name: 'a', queue: 'x', key: 'k', state: 'ready' }), [wanted.id]);
    assert.equal((await listed(store, { name: 'a' })).length, 3);
    assert.equal((await listed(store, { queue: 'x' })).length, 2);
    assert.equal((await listed(store, { key: 'k' })).length, 2);
    assert.deepEqual(await listed(store, { name: 'a', state: 'dead' }), []);
    assert.deepEqual(await listed(store, { name: `a' OR '1'='1` }), []);
  },

  'every state can be listed': async ({ store }) => {
    const dead = await bury(store);
    const done = await startOne(store);
    await settleOne(store, done, complete);
    const cancelled = await enqueueOne(store);
    await store.cancel([cancelled]);
    const retried = await startOne(store);
    await settleOne(store, retried, retryIn(HOUR));
    const byState: Record<JobState, string> = {
      dead,
      completed: done.id,
      cancelled,
      retrying: retried.id,
      running: (await startOne(store)).id,
      scheduled: await enqueueOne(store, { delayMs: HOUR }),
      ready: await enqueueOne(store),
    };
    for (const [state, id] of Object.entries(byState)) {
      assert.deepEqual(await listed(store, { state: state as JobState }), [id], state);
    }
  },

  'a waiting job that fell due is listed as ready': async ({ store, advance }) => {
    const scheduled = await enqueueOne(store, { delayMs: MINUTE });
    const retrying = await startOne(store);
    await settleOne(store, retrying, retryIn(MINUTE));
    assert.deepEqual(await listed(store, { state: 'ready' }), []);
    await advance(HOUR);
    assert.deepEqual(await listed(store, { state: 'ready' }), [retrying.id, scheduled]);
    assert.deepEqual(await listed(store, { state: 'scheduled' }), []);
    assert.deepEqual(await listed(store, { state: 'retrying' }), []);
  },
});

const ledger: StoreCase[] = cases('runs', {
  'a job that never ran, or is unknown, has an empty ledger': async ({ store }) => {
    const id = await enqueueOne(store);
    assert.deepEqual(await store.runs(id), []);
    assert.deepEqual(await store.runs('unknown'), []);
    await claimOne(store);
    assert.deepEqual(await store.runs(id), []);
  },
});

const queues: StoreCase[] = cases('queues', {
  'queues that hold jobs or are paused are known': async ({ store }) => {
    assert.deepEqual(await store.queues(), []);
    await store.enqueue([newJob({ queue: 'a' }), newJob({ queue: 'b' })]);
    await store.hold({ queue: 'b' }, null);
    await store.hold({ queue: 'empty' }, null);
    const known = (await store.queues()).toSorted((x, y) => (x.queue < y.queue ? -1 : 1));
    assert.deepEqual(known, [
      { queue: 'a', paused: false },
      { queue: 'b', paused: true },
      { queue: 'empty', paused: true },
    ]);
    await store.release({ queue: 'b' });
    assert.equal((await store.queues()).find((info) => info.queue === 'b')?.paused, false);
  },

  'queues come in the order of their names': async ({ store }) => {
    await store.enqueue([newJob({ queue: 'c' }), newJob({ queue: 'a' })]);
    await store.hold({ queue: 'b' }, null);
    assert.deepEqual(
      (await store.queues()).map((info) => info.queue),
      ['a', 'b', 'c'],
    );
  },

  'a retry queue is known once a job waits there': async ({ store }) => {
    const job = await startOne(store, { queue: 'mail', retryQueue: 'mail.retry' });
    await settleOne(store, job, retryIn(0));
    const names = (await store.queues()).map((info) => info.queue);
    assert.deepEqual(names.toSorted(), ['mail', 'mail.retry']);
    await claimOne(store, { queues: [quota({ queue: 'mail.retry' })] });
  },
});

export const readCases: readonly StoreCase[] = [...getting, ...listing, ...ledger, ...queues];
