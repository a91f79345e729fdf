import assert from 'node:assert/strict';
import type { RetentionRule, RetentionWrite, Store } from '../store.ts';
import { claim, complete, enqueueOne, HOUR, hostileTexts, idsOf, newJobs, settlement } from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

function completedFor(name: string | null, keptMs: number | null, source: RetentionRule['source'] = 'code') {
  return { name, state: 'completed', source, keptMs } as const;
}

async function completeAll(store: Store, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const ids = new Map<string, string>();
  for (const name of names) ids.set(name, await enqueueOne(store, { name }));
  const { jobs } = await claim(store, { limit: names.length });
  await store.settle(jobs.map((job) => settlement(job, complete)));
  return ids;
}

/** Prunes until nothing is left to delete. Answers how many jobs that were, and in how many calls. */
async function pruneAll(store: Store, limit: number): Promise<{ readonly jobs: number; readonly calls: number }> {
  let jobs = 0;
  for (let calls = 1; ; calls++) {
    const answer = await store.prune(limit);
    jobs += answer.jobs;
    if (answer.isDone) return { jobs, calls };
    assert.ok(calls < 1_000, 'it comes to an end');
  }
}

const byText = (rules: readonly RetentionWrite[]): string[] => rules.map((rule) => JSON.stringify(rule)).sort();

export const retentionCases: readonly StoreCase[] = [
  ...cases('retention', {
    'rules are read back as they were written, whatever the name': async ({ store }) => {
      assert.deepEqual(await store.retention(), []);
      const rules: RetentionRule[] = [
        completedFor(null, 5, 'set'),
        { name: 'a', state: 'dead', source: 'code', keptMs: null },
        ...hostileTexts.filter((name) => name !== '').map((name) => completedFor(name, HOUR)),
      ];
      await store.writeRetention(rules);
      const read = await store.retention();
      assert.deepEqual(
        byText(read.map(({ name, state, source, keptMs }) => ({ name, state, source, keptMs }))),
        byText(rules),
      );
    },
  }),

  ...cases('writeRetention', {
    'a rule from code only becomes longer, in whatever order deploys open': async ({ store }) => {
      const seen: (number | null | undefined)[] = [];
      for (const keptMs of [2 * HOUR, HOUR, 3 * HOUR, null, HOUR]) {
        await store.writeRetention([completedFor('a', keptMs)]);
        seen.push((await store.retention())[0]?.keptMs);
      }
      assert.deepEqual(seen, [2 * HOUR, 2 * HOUR, 3 * HOUR, null, null]);
    },

    'concurrent deploys leave the longest': async ({ store }) => {
      await Promise.all([5, 1, 9, 3].map((hours) => store.writeRetention([completedFor('a', hours * HOUR)])));
      assert.deepEqual(
        (await store.retention()).map(({ keptMs }) => keptMs),
        [9 * HOUR],
      );
    },

    'an order replaces an order, goes before code, and is taken back': async ({ store, advance }) => {
      const ids = await completeAll(store, ['a']);
      await store.writeRetention([completedFor('a', 10 * HOUR)]);
      await store.writeRetention([completedFor('a', 20 * HOUR, 'set')]);
      await store.writeRetention([completedFor('a', 30 * HOUR, 'set'), completedFor('a', 11 * HOUR)]);
      await advance(29 * HOUR);
      assert.equal((await store.prune(10)).jobs, 0);
      await store.writeRetention([{ name: 'a', state: 'completed', source: 'set' }]);
      assert.deepEqual(
        (await store.retention()).map(({ source, keptMs }) => [source, keptMs]),
        [['code', 11 * HOUR]],
      );
      assert.equal((await store.prune(10)).jobs, 1);
      assert.deepEqual(await store.get([...ids.values()]), []);
    },
  }),

  ...cases('prune', {
    'without a rule jobs are kept for a day, 90 days and 7 days': async ({ store, advance }) => {
      await completeAll(store, ['a']);
      await store.cancel([await enqueueOne(store)]);
      await advance(23 * HOUR);
      assert.equal((await store.prune(10)).jobs, 0);
      await advance(HOUR);
      assert.equal((await store.prune(10)).jobs, 1);
      await advance(6 * 24 * HOUR);
      assert.equal((await store.prune(10)).jobs, 1);
      assert.deepEqual(await store.list({ limit: 10 }), []);
    },

    'each name is kept for its own time, all others for that of the store': async ({ store, advance }) => {
      await store.writeRetention([
        completedFor(null, 4 * HOUR, 'set'),
        completedFor('short', HOUR),
        completedFor('long', 8 * HOUR),
        completedFor('for ever', null),
      ]);
      const ids = await completeAll(store, ['for ever', 'long', 'other', 'short', 'another']);
      const left = async (): Promise<string[]> => {
        await pruneAll(store, 10);
        const found = new Set(idsOf(await store.get([...ids.values()])));
        return [...ids].filter(([, id]) => found.has(id)).map(([name]) => name);
      };
      assert.deepEqual(await left(), ['for ever', 'long', 'other', 'short', 'another']);
      await advance(2 * HOUR);
      assert.deepEqual(await left(), ['for ever', 'long', 'other', 'another']);
      await advance(3 * HOUR);
      assert.deepEqual(await left(), ['for ever', 'long']);
      await advance(4 * HOUR);
      assert.deepEqual(await left(), ['for ever']);
      await advance(10_000 * HOUR);
      assert.deepEqual(await left(), ['for ever']);
    },

    'jobs that are kept for longer do not hide those behind them': async ({ store, advance }) => {
      await store.writeRetention([completedFor('long', 100 * HOUR), completedFor(null, HOUR, 'set')]);
      for (const name of ['long', 'short', 'long', 'short']) {
        await store.enqueue(newJobs(30, { name }));
        const { jobs } = await claim(store, { limit: 30 });
        await store.settle(jobs.map((job) => settlement(job, complete)));
      }
      await advance(2 * HOUR);
      assert.equal((await pruneAll(store, 7)).jobs, 60);
      // Those that end later are found as well.
      await completeAll(store, ['short', 'long']);
      await advance(2 * HOUR);
      assert.equal((await pruneAll(store, 7)).jobs, 1);
      await advance(100 * HOUR);
      assert.equal((await pruneAll(store, 7)).jobs, 61);
    },

    'a shorter time by order deletes what was passed over before': async ({ store, advance }) => {
      await store.writeRetention([completedFor('long', null), completedFor(null, HOUR, 'set')]);
      await completeAll(store, ['long', 'short', 'long']);
      await advance(2 * HOUR);
      assert.equal((await pruneAll(store, 10)).jobs, 1);
      await store.writeRetention([completedFor('long', 0, 'set')]);
      assert.equal((await pruneAll(store, 10)).jobs, 2);
    },
  }),
];
