import assert from 'node:assert/strict';
import type { NewJob, Store } from '../store.ts';
import {
  claim,
  claimOne,
  complete,
  giveBack,
  HOUR,
  MINUTE,
  newJob,
  only,
  quota,
  retryIn,
  settleOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const debounced = (n: number, changes: Partial<NewJob> = {}): NewJob =>
  newJob({
    key: 'k',
    keyLife: 'started',
    delayMs: 5 * MINUTE,
    payload: JSON.stringify({ n }),
    debounce: { maxWaitMs: null },
    ...changes,
  });

async function sent(store: Store, job: NewJob) {
  return only(await store.enqueue([job]));
}

export const debounceCases: readonly StoreCase[] = cases('enqueue', {
  async 'a debounced job is replaced by the next of its key, and put off'({ store, advance }) {
    const first = await sent(store, debounced(1));
    await advance(3 * MINUTE);
    assert.deepEqual(await sent(store, debounced(2)), { id: first.id, existed: true, replaced: true });
    assert.equal((await claim(store)).nextDueAt, only(await store.get([first.id])).dueAt);
    await advance(3 * MINUTE);
    assert.deepEqual((await claim(store)).jobs, [], 'it was put off');
    await advance(3 * MINUTE);
    const job = await claimOne(store);
    assert.deepEqual([job.id, job.payload], [first.id, '{"n":2}']);
    assert.deepEqual((await claim(store)).jobs, []);
  },

  async 'a debounced job starts after its longest wait, whatever is sent meanwhile'({ store, advance }) {
    const bound = { debounce: { maxWaitMs: 8 * MINUTE } };
    await sent(store, debounced(1, bound));
    await advance(4 * MINUTE);
    await sent(store, debounced(2, bound));
    await advance(4 * MINUTE);
    await sent(store, debounced(3, bound));
    assert.equal((await claimOne(store)).payload, '{"n":3}');
  },

  async 'a debounced job that has started is left alone, and the next is another job'({ store, advance }) {
    const first = await sent(store, debounced(1));
    await advance(6 * MINUTE);
    const running = await claimOne(store);
    const second = await sent(store, debounced(2));
    assert.equal(second.existed, false);
    assert.notEqual(second.id, first.id);
    await settleOne(store, running, complete);
    await advance(6 * MINUTE);
    assert.equal((await claimOne(store)).payload, '{"n":2}');
  },

  async 'a job that waits for its retry is cancelled by the next debounced one of its key'({ store, advance }) {
    const first = await sent(store, debounced(1));
    const other = await sent(store, debounced(1, { name: 'other' }));
    await advance(6 * MINUTE);
    for (const job of (await claim(store)).jobs) await settleOne(store, job, retryIn(HOUR));
    const second = await sent(store, debounced(2));
    assert.equal(second.existed, false);
    const stateOf = async ({ id }: { id: string }): Promise<string> => only(await store.get([id])).state;
    assert.deepEqual([await stateOf(first), await stateOf(other)], ['cancelled', 'retrying']);
    await sent(store, debounced(3));
    await advance(6 * MINUTE);
    const running = await claimOne(store);
    assert.deepEqual([running.id, running.payload], [second.id, '{"n":3}']);
    // Not while it runs.
    await sent(store, debounced(4));
    assert.equal(await stateOf(second), 'running');
  },

  async 'a debounced job that was only handed back is superseded, too'({ store, advance }) {
    const first = await sent(store, debounced(1));
    await advance(6 * MINUTE);
    await settleOne(store, await claimOne(store), giveBack('release'));
    const second = await sent(store, debounced(2));
    assert.equal(only(await store.get([first.id])).state, 'cancelled');
    await advance(6 * MINUTE);
    const { jobs } = await claim(store);
    assert.deepEqual(
      jobs.map(({ id, payload }) => [id, payload]),
      [[second.id, '{"n":2}']],
    );
  },

  async 'a debounced job that is sent again supersedes no later one'({ store, advance }) {
    const early = debounced(1);
    await sent(store, early);
    await advance(6 * MINUTE);
    await settleOne(store, await claimOne(store), complete);
    const later = await sent(store, debounced(2));
    await advance(6 * MINUTE);
    await settleOne(store, await claimOne(store), retryIn(HOUR));
    assert.deepEqual(await sent(store, early), { id: early.id, existed: false });
    assert.equal(only(await store.get([later.id])).state, 'retrying');
  },

  async 'a job that holds its key longer than to its start is not replaced'({ store }) {
    const holder = await sent(store, newJob({ key: 'k', payload: '1' }));
    assert.deepEqual(await sent(store, debounced(2)), { id: holder.id, existed: true });
    assert.equal((await claimOne(store)).payload, '1');
  },

  async 'debounced jobs of one batch replace each other in their order'({ store, advance }) {
    const jobs = [debounced(1), debounced(2), debounced(3, { key: 'other' }), debounced(4)];
    const answers = await store.enqueue(jobs);
    assert.deepEqual(
      answers.map(({ existed }) => existed),
      [false, true, false, true],
    );
    await advance(6 * MINUTE);
    const { jobs: claimed } = await claim(store);
    assert.deepEqual(claimed.map(({ payload }) => payload).sort(), ['{"n":3}', '{"n":4}']);
  },

  async 'a replaced job waits where the last one says'({ store, advance }) {
    await sent(store, debounced(1, { queue: 'a', priority: 5, resource: 'x' }));
    await sent(store, debounced(2, { queue: 'b', priority: 1, resource: 'y' }));
    assert.equal((await claim(store, { queues: [quota({ queue: 'a' })] })).nextDueAt, null);
    await advance(6 * MINUTE);
    assert.deepEqual((await claim(store, { queues: [quota({ queue: 'a' })] })).jobs, []);
    const { queue, priority, resource } = await claimOne(store, { queues: [quota({ queue: 'b' })] });
    assert.deepEqual([queue, priority, resource], ['b', 1, 'y']);
  },

  async 'a replaced job has the tags of the last one'({ store }) {
    const { id } = await sent(store, debounced(1, { tags: ['a', 'b'] }));
    await sent(store, debounced(2, { tags: ['b', 'c'] }));
    assert.deepEqual(only(await store.get([id])).tags, ['b', 'c']);
    const found = async (tag: string): Promise<number> => (await store.list({ tag, limit: 5 })).length;
    assert.deepEqual([await found('a'), await found('b'), await found('c')], [0, 1, 1]);
    await sent(store, debounced(3));
    assert.deepEqual([await found('b'), await found('c')], [0, 0]);
  },

  async 'a replaced job counts as enqueued once'({ store }) {
    await sent(store, debounced(1));
    await sent(store, debounced(2));
    const { rows } = await store.stats();
    assert.deepEqual(
      rows.map(({ totals, states }) => [totals.enqueued, states.scheduled]),
      [[1, 1]],
    );
  },
});
