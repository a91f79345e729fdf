import assert from 'node:assert/strict';
import type { JobState } from '../../job.ts';
import type { ChangeRequest } from '../change.ts';
import type { Operation, Store } from '../store.ts';
import {
  bury,
  changeAll,
  changeRequest,
  claim,
  claimOne,
  complete,
  die,
  enqueueOne,
  HOUR,
  idsOf,
  jobOf,
  MINUTE,
  newJobs,
  only,
  pruneWith,
  quota,
  redrive,
  retryIn,
  settlement,
  settleOne,
  startOne,
  timeOf,
} from './builders.ts';
import { errorOf, failed } from './selection.ts';
import { cases, type StoreCase } from './suite.ts';

/** Dead jobs, in the order in which they died. */
async function buryMany(store: Store, count: number): Promise<string[]> {
  await store.enqueue(newJobs(count));
  const { jobs } = await claim(store, { limit: count });
  await store.settle(jobs.map((job) => settlement(job, die(), { error: errorOf('f') })));
  return idsOf(jobs);
}

const running: StoreCase[] = cases('change', {
  'a scheduled and a retrying job run now, with their history': async ({ store }) => {
    const retrying = await failed(store, errorOf('f'), 'retrying', { key: 'k' });
    const scheduled = await enqueueOne(store, { delayMs: HOUR });
    const { ids } = await changeAll(store, 'runNow', { state: ['scheduled', 'retrying'] });
    assert.deepEqual(ids.toSorted(), [retrying, scheduled].toSorted());
    assert.partialDeepStrictEqual(await jobOf(store, retrying), {
      state: 'ready',
      lane: 'retry',
      attempts: 1,
      key: 'k',
    });
    assert.equal((await store.runs(retrying)).length, 1);
    const { jobs } = await claim(store);
    assert.deepEqual(idsOf(jobs).toSorted(), [retrying, scheduled].toSorted());
    const again = jobs.find(({ id }) => id === retrying);
    assert.partialDeepStrictEqual(again, { run: 2, attempts: 2 });
  },

  'a job behind a resource, of which many wait, is found when it is to run now': async ({ store }) => {
    const ids: string[] = [];
    for (let index = 0; index < 3; index++)
      ids.push(await enqueueOne(store, { resource: `r/${index}`, delayMs: HOUR }));
    assert.deepEqual((await claim(store)).jobs, []);
    await changeAll(store, 'runNow', { name: 'email.send' });
    assert.deepEqual(idsOf((await claim(store)).jobs).toSorted(), ids.toSorted());
  },

  'due times are spread by the interval, also over several parts': async ({ store }) => {
    await store.enqueue(newJobs(5, { delayMs: HOUR }));
    const began = await timeOf(store);
    await changeAll(store, 'runNow', { name: 'email.send' }, { intervalMs: MINUTE, part: 2 });
    const dueAt = (await store.list({ limit: 10 })).map((job) => job.dueAt).sort((a, b) => a - b);
    assert.ok((dueAt[0] as number) < began + MINUTE);
    for (let index = 1; index < 5; index++) {
      assert.equal((dueAt[index] as number) - (dueAt[index - 1] as number), MINUTE);
    }
    assert.equal((await claim(store)).jobs.length, 1);
  },

  'a cancel takes jobs by the state that they had when it began': async ({ store, advance }) => {
    const [ready, starts] = [await enqueueOne(store), await enqueueOne(store, { priority: 0 })];
    const later = await enqueueOne(store, { delayMs: MINUTE });
    const begin = async (state: JobState[]): Promise<ChangeRequest> => {
      const request = changeRequest('cancel', { state }, { part: 0 });
      await store.change(request);
      return { ...request, part: 100 };
    };
    const orders = [
      await begin(['running']),
      await begin(['ready', 'running']),
      await begin(['scheduled', 'retrying']),
    ];
    await advance(1);
    assert.equal((await claimOne(store)).id, starts);
    await advance(2 * MINUTE);
    const takenBy = async (order: ChangeRequest): Promise<string[]> => {
      const { ids, operation } = await store.change(order);
      return operation.endedAt === null ? [...ids, ...(await takenBy(order))] : [...ids];
    };
    const taken = [];
    for (const order of orders) taken.push((await takenBy(order)).toSorted());
    assert.deepEqual(taken, [[], [ready, starts].toSorted(), [later]]);
  },

  'running now never puts a job off': async ({ store }) => {
    await store.enqueue(newJobs(3, { delayMs: MINUTE }));
    const answer = await changeAll(store, 'runNow', { name: 'email.send' }, { intervalMs: HOUR });
    const now = await timeOf(store);
    const jobs = await store.list({ limit: 10 });
    for (const job of jobs) assert.ok(job.dueAt <= now + MINUTE);
    // Those that are due before their turn are told apart.
    const first = only(jobs.filter(({ state }) => state === 'ready'));
    assert.deepEqual(answer.ids, [first.id]);
    const others = idsOf(jobs.filter(({ id }) => id !== first.id)).toSorted();
    assert.deepEqual(
      answer.skipped.toSorted((a, b) => a.id.localeCompare(b.id)),
      others.map((id) => ({ id, why: 'due-sooner' })),
    );
    const operation = only(await store.operations(1));
    assert.partialDeepStrictEqual(operation, { changed: 1, skipped: 2 });
    assert.equal(typeof operation.nextDueAt, 'number');
  },

  'a job that ran since the operation began is not run again by it': async ({ store, advance }) => {
    await store.enqueue(newJobs(2, { delayMs: HOUR }));
    const request = changeRequest('runNow', { name: 'email.send' }, { part: 1 });
    const first = await store.change(request);
    await advance(MINUTE);
    await settleOne(store, await claimOne(store), retryIn(HOUR));
    const rest: string[] = [];
    for (let end: number | null = null; end === null; ) {
      const answer = await store.change(request);
      rest.push(...answer.ids);
      end = answer.operation.endedAt;
    }
    assert.equal(first.ids.length, 1);
    assert.equal(rest.length, 1);
    assert.notDeepEqual(first.ids, rest);
  },
});

const bulk: StoreCase[] = cases('change', {
  'redriven jobs may be spread by an interval': async ({ store }) => {
    const ids = await buryMany(store, 3);
    await changeAll(store, 'redrive', { name: 'email.send' }, { intervalMs: HOUR });
    const jobs = await store.get(ids);
    assert.deepEqual(jobs.map(({ state }) => state).toSorted(), ['ready', 'scheduled', 'scheduled']);
    assert.deepEqual([...new Set(jobs.map(({ lane }) => lane))], ['redrive']);
    assert.equal((await claim(store)).jobs.length, 1);
  },

  'a redriven job may have another payload': async ({ store }) => {
    const id = await bury(store);
    await changeAll(store, 'redrive', { ids: [id] }, { payload: '{"to":"b@example.com"}' });
    assert.deepEqual((await jobOf(store, id)).payload, { to: 'b@example.com' });
    assert.equal((await claimOne(store)).payload, '{"to":"b@example.com"}');
  },

  'waiting jobs of a selection are cancelled, running ones told': async ({ store }) => {
    const tags = ['endpoint:42'];
    const running = await startOne(store, { tags });
    const waiting = await enqueueOne(store, { tags });
    const later = await enqueueOne(store, { tags, delayMs: HOUR });
    const other = await enqueueOne(store, { tags: ['endpoint:7'] });
    const dead = await bury(store, { tags, queue: 'elsewhere' });
    const { ids, cancelling } = await store.change(changeRequest('cancel', { tag: 'endpoint:42' }));
    assert.deepEqual(ids.toSorted(), [running.id, waiting, later].toSorted());
    assert.equal(cancelling, 1);
    const states = (await store.get([waiting, later, other, dead, running.id])).map(({ state }) => state);
    assert.deepEqual(states, ['cancelled', 'cancelled', 'ready', 'dead', 'running']);
    assert.equal((await jobOf(store, running.id)).cancelRequested, true);
  },

  'waiting and running jobs of a queue are all cancelled, part by part': async ({ store }) => {
    await store.enqueue(newJobs(5, { queue: 'mail' }));
    await claim(store, { limit: 2, queues: [quota({ queue: 'mail' })] });
    const other = await enqueueOne(store);
    const { ids } = await changeAll(store, 'cancel', { queue: 'mail' }, { part: 2 });
    assert.equal(new Set(ids).size, 5);
    assert.equal((await jobOf(store, other)).state, 'ready');
    assert.equal((await store.count({ state: 'cancelled' })).count, 3);
  },

  'a bulk action selects by error, message and name at once': async ({ store }) => {
    const wanted = await failed(store, errorOf('f1', 'refused'), 'dead', { name: 'a' });
    await failed(store, errorOf('f1', 'timeout'), 'dead', { name: 'a' });
    await failed(store, errorOf('f2', 'refused'), 'dead', { name: 'a' });
    await failed(store, errorOf('f1', 'refused'), 'dead', { name: 'b' });
    assert.deepEqual((await redrive(store, { error: 'f1', message: 'REF', name: 'a' })).ids, [wanted]);
  },

  'retrying jobs of one error run now, the others wait on': async ({ store }) => {
    const wanted = await failed(store, errorOf('f1'), 'retrying');
    const other = await failed(store, errorOf('f2'), 'retrying');
    assert.deepEqual((await changeAll(store, 'runNow', { error: 'f1' })).ids, [wanted]);
    assert.equal((await jobOf(store, other)).state, 'retrying');
  },

  'a discarded job leaves its tags free': async ({ store }) => {
    const id = await bury(store, { tags: ['t'] });
    await changeAll(store, 'discard', { tag: 't' });
    assert.deepEqual(await store.get([id]), []);
    const next = await enqueueOne(store);
    assert.deepEqual(await store.list({ tag: 't', limit: 5 }), []);
    assert.deepEqual((await jobOf(store, next)).tags, []);
  },

  'a redriven job keeps its resource': async ({ store }) => {
    const id = await bury(store, { resource: 'smtp' });
    assert.deepEqual((await redrive(store, { name: 'email.send' })).ids, [id]);
    assert.equal((await claimOne(store)).resource, 'smtp');
  },
});

const resuming: StoreCase[] = cases('change', {
  'an operation says who ordered what, and how far it came': async ({ store }) => {
    const ids = await buryMany(store, 3);
    const request = changeRequest('redrive', { error: 'f' }, { by: 'ann@host', part: 2, canary: 1 });
    const { operation } = await store.change(request);
    assert.partialDeepStrictEqual(operation, {
      id: request.id,
      action: 'redrive',
      by: 'ann@host',
      selection: { error: 'f' },
      state: 'running',
      endedAt: null,
      changed: 2,
      skipped: 0,
      canary: ids.slice(0, 1),
      note: null,
    });
    assert.deepEqual(await store.operations(10), [operation]);
  },

  'the same order continues the unfinished operation, and each job is changed once': async ({ store, advance }) => {
    const ids = await buryMany(store, 5);
    const order = (changes = {}) => changeRequest('redrive', { error: 'f' }, { order: 'same', part: 2, ...changes });
    const first = await store.change(order());
    // The process is killed here; meanwhile a job that was brought back dies again.
    await advance(MINUTE);
    const again = await claimOne(store);
    await settleOne(store, again, die(), { error: errorOf('f') });
    const rest: string[] = [];
    let last: Operation | null = null;
    while (last?.endedAt === undefined || last.endedAt === null) {
      const answer = await store.change(order());
      rest.push(...answer.ids);
      last = answer.operation;
    }
    assert.deepEqual([...first.ids, ...rest].toSorted(), ids.toSorted());
    assert.partialDeepStrictEqual(last, { id: first.operation.id, state: 'done', changed: 5 });
    assert.equal((await jobOf(store, again.id)).state, 'dead');
    // Once it is done, the same order begins another one.
    assert.deepEqual((await store.change(order())).ids, [again.id]);
    assert.equal((await store.operations(10)).length, 2);
  },

  'an operation that is sent again under its id is not begun twice': async ({ store }) => {
    const [id] = await buryMany(store, 1);
    const request = changeRequest('redrive', { error: 'f' });
    assert.deepEqual((await store.change(request)).ids, [id]);
    const repeated = await store.change(request);
    assert.deepEqual(repeated.ids, []);
    assert.equal(repeated.operation.changed, 1);
    assert.equal((await store.operations(10)).length, 1);
  },

  'two processes work on one operation, and each job is changed once': async ({ store }) => {
    const ids = await buryMany(store, 20);
    const work = async (): Promise<string[]> => {
      const request = changeRequest('redrive', { error: 'f' }, { order: 'same', part: 3 });
      const changed: string[] = [];
      for (;;) {
        const answer = await store.change(request);
        changed.push(...answer.ids);
        if (answer.operation.endedAt !== null) return changed;
      }
    };
    const changed = await Promise.all([work(), work(), work()]);
    assert.deepEqual(changed.flat().toSorted(), ids.toSorted());
  },

  'jobs that die after the operation began are not its concern': async ({ store, advance }) => {
    const ids = await buryMany(store, 2);
    const request = changeRequest('discard', { error: 'f' }, { part: 0 });
    await store.change(request);
    await advance(MINUTE);
    const later = await failed(store, errorOf('f'), 'dead');
    assert.deepEqual((await store.change({ ...request, part: 10 })).ids.toSorted(), ids.toSorted());
    assert.equal((await jobOf(store, later)).state, 'dead');
  },

  'a stopped operation says why, and is not continued': async ({ store }) => {
    await buryMany(store, 2);
    const request = changeRequest('redrive', { error: 'f' }, { order: 'same', part: 1 });
    await store.change(request);
    const { operation, ids } = await store.change({ ...request, stop: 'the canary died' });
    assert.deepEqual(ids, []);
    assert.partialDeepStrictEqual(operation, { state: 'stopped', note: 'the canary died', changed: 1 });
    const next = await store.change({ ...changeRequest('redrive', { error: 'f' }, { order: 'same', part: 5 }) });
    assert.notEqual(next.operation.id, operation.id);
    assert.equal(next.ids.length, 1);
  },

  'an order that concerns no jobs is on record as done, with its note': async ({ store }) => {
    await enqueueOne(store);
    const request = changeRequest('cancel', { queue: 'default' });
    await store.change({ ...request, action: 'pause', order: request.id, part: 0, stop: 'queue default was paused' });
    const [operation] = await store.operations(1);
    const kept = { action: 'pause', state: 'done', note: 'queue default was paused', changed: 0, by: request.by };
    assert.partialDeepStrictEqual(operation, { ...kept, selection: { queue: 'default' } });
    assert.equal((await store.count({ state: 'ready' })).count, 1);
  },

  'an operation that is done may still be stopped, when its canary fails': async ({ store }) => {
    await buryMany(store, 1);
    const request = changeRequest('redrive', { error: 'f' }, { canary: 1 });
    assert.equal((await store.change(request)).operation.state, 'done');
    const { operation } = await store.change({ ...request, stop: 'the canary died' });
    assert.partialDeepStrictEqual(operation, { state: 'stopped', note: 'the canary died', changed: 1 });
    const again = await store.change({ ...request, stop: 'too late' });
    assert.equal(again.operation.note, 'the canary died');
  },

  'an operation keeps how it was ordered, and each part may change it': async ({ store }) => {
    await buryMany(store, 2);
    const options = { canary: 1, keepAttempts: false, rate: '50/s', continuedBy: null };
    const request = changeRequest('redrive', { error: 'f' }, { part: 0, order: 'same', options });
    assert.deepEqual((await store.change(request)).operation.options, options);
    const other = { ...options, rate: null, continuedBy: 'bob' };
    const found = await store.change({ ...request, id: changeRequest('redrive', {}).id, options: other });
    assert.deepEqual(found.operation.options, options);
    const { operation } = await store.change({ ...request, part: 1, options: other, intervalMs: HOUR });
    assert.deepEqual(operation.options, other);
    assert.ok(operation.nextDueAt >= operation.startedAt + HOUR);
    const without = await store.change(changeRequest('discard', { error: 'f' }, { part: 0 }));
    assert.equal(without.operation.options, null);
  },

  'the limit bounds the whole operation': async ({ store }) => {
    await buryMany(store, 5);
    assert.equal((await changeAll(store, 'redrive', { error: 'f', limit: 3 }, { part: 2 })).ids.length, 3);
    assert.equal((await store.count({ state: 'dead' })).count, 2);
  },

  'an operation without progress for a day is not continued': async ({ store, advance }) => {
    await buryMany(store, 2);
    const request = changeRequest('redrive', { error: 'f' }, { order: 'same', part: 1 });
    const { operation } = await store.change(request);
    await advance(25 * HOUR);
    const next = await store.change(changeRequest('redrive', { error: 'f' }, { order: 'same', part: 5 }));
    assert.notEqual(next.operation.id, operation.id);
    const old = only((await store.operations(10)).filter(({ id }) => id === operation.id));
    assert.equal(old.state, 'stopped');
  },

  'operations are pruned long after they ended': async ({ store, advance }) => {
    await buryMany(store, 1);
    await redrive(store, { error: 'f' });
    await settleOne(store, await claimOne(store), complete);
    await advance(91 * 24 * HOUR);
    await pruneWith(store, { completedMs: null, deadMs: null, cancelledMs: null }, 10);
    // To keep everything may have been an order of its own.
    const actions = (await store.operations(10)).map(({ action }) => action);
    assert.ok(!actions.includes('redrive'), actions.join());
  },
});

export const changeCases: readonly StoreCase[] = [...running, ...bulk, ...resuming];
