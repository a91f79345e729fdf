import assert from 'node:assert/strict';
import { runTimeBounds } from '../history.ts';
import type { HistoryCounts, Store, StoreHistory } from '../store.ts';
import {
  bury,
  claim,
  claimOne,
  complete,
  crash,
  die,
  discard,
  giveBack,
  HOUR,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  only,
  pruneWith,
  redrive,
  retryIn,
  settlement,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase, type StoreHarness } from './suite.ts';

const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** A store may wait for others that write, but not for so many steps. */
const MOST_STEPS = 10;

/** Adds up all that has ended by now. */
export async function rolledUp({ store, advance }: StoreHarness): Promise<void> {
  const { now } = await store.history({ from: 0, to: DAY, stepMs: DAY });
  for (let step = 0; step < MOST_STEPS; step++) {
    await advance(20 * MINUTE);
    while (!(await store.rollUp()).isDone);
    if ((await store.history({ from: 0, to: DAY, stepMs: DAY })).upTo >= now) return;
  }
  assert.fail('what has ended is not in the history');
}

async function read(store: Store, stepMs = DAY, name?: string): Promise<StoreHistory> {
  const { now } = await store.history({ from: 0, to: stepMs, stepMs });
  const end = Math.ceil(now / stepMs) * stepMs + stepMs;
  return store.history({
    from: end - Math.ceil(YEAR / stepMs) * stepMs,
    to: end,
    stepMs,
    ...(name === undefined ? {} : { name }),
  });
}

function total(points: readonly HistoryCounts[]): HistoryCounts {
  const add = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
  const sum = (counter: Exclude<keyof HistoryCounts, 'runTimes'>): number => add(points.map((point) => point[counter]));
  return {
    runs: sum('runs'),
    completed: sum('completed'),
    failed: sum('failed'),
    retries: sum('retries'),
    dead: sum('dead'),
    runMs: sum('runMs'),
    runTimes: points[0]?.runTimes.map((_, bin) => add(points.map(({ runTimes }) => runTimes[bin] ?? 0))) ?? [],
  };
}

export const historyCases: readonly StoreCase[] = cases('history', {
  'an empty store has no history': async (harness) => {
    await rolledUp(harness);
    const { points, names, now, upTo } = await read(harness.store);
    assert.deepEqual([points, names], [[], []]);
    assert.ok(upTo <= now && upTo > now - 5 * MINUTE, `up to ${now - upTo} ms ago`);
  },

  'runs are counted by how they ended, and each once': async (harness) => {
    const { store, advance } = harness;
    await settleOne(store, await startOne(store), complete);
    const failed = await startOne(store);
    await settleOne(store, failed, retryIn(0));
    await settleOne(store, await claimOne(store), complete);
    await settleOne(store, await startOne(store), die());
    await settleOne(store, await startOne(store), giveBack('release', HOUR));
    await settleOne(store, await startOne(store), giveBack('snooze', HOUR));
    const lost = await startOne(store);
    await advance(LEASE + MINUTE);
    await store.settle([crash(lost, retryIn(HOUR))]);
    await rolledUp(harness);
    await rolledUp(harness);
    const { runTimes, runMs, ...counts } = total((await read(store)).points);
    assert.deepEqual(counts, { runs: 6, completed: 2, failed: 3, retries: 1, dead: 1 });
    // Of each 5 ms, and nothing of the crash.
    assert.equal(runMs, 25);
    const bin = runTimeBounds.findIndex((bound) => bound > 5);
    assert.deepEqual(
      runTimes,
      [...runTimeBounds, null].map((_, index) => (index === bin ? 5 : 0)),
    );
  },

  'a run that takes long is counted in its bin': async (harness) => {
    const { store } = harness;
    for (const took of [0, 1, 700, 2 * HOUR]) {
      const job = await startOne(store);
      await store.settle([settlement(job, complete, { endedAt: job.claimedAt + took })]);
    }
    await rolledUp(harness);
    const { runTimes, runMs } = total((await read(store)).points);
    const bins = runTimes.flatMap((runs, bin) => (runs === 0 ? [] : [runTimeBounds[bin] ?? null]));
    assert.deepEqual(bins, [1, 2, 1_000, null]);
    assert.equal(runMs, 701 + 2 * HOUR);
  },

  'runs are counted by name, and one name alone when it is asked for': async (harness) => {
    const { store } = harness;
    for (const name of ['a', 'b', 'b']) await settleOne(store, await startOne(store, { name }), complete);
    await rolledUp(harness);
    const { points, names } = await read(store);
    assert.equal(total(points).runs, 3);
    assert.deepEqual(
      names.map(({ name, runs, runMs }) => [name, runs, runMs]),
      [
        ['b', 2, 10],
        ['a', 1, 5],
      ],
    );
    const ofB = await read(store, DAY, 'b');
    assert.equal(total(ofB.points).runs, 2);
    assert.deepEqual(ofB.names, []);
    assert.deepEqual((await read(store, DAY, 'c')).points, []);
  },

  'a step has what was settled in it, in minutes and in hours': async (harness) => {
    const { store, advance } = harness;
    const first = await store.history({ from: 0, to: DAY, stepMs: DAY });
    // To the start of an hour.
    await advance(HOUR - (first.now % HOUR) + MINUTE / 2);
    for (const wait of [3 * MINUTE, 70 * MINUTE, 0]) {
      await settleOne(store, await startOne(store), complete);
      await advance(wait);
    }
    await rolledUp(harness);
    const start = Math.floor(first.now / HOUR + 1) * HOUR;
    const at = async (stepMs: number): Promise<number[][]> =>
      (await read(store, stepMs)).points.map((point) => [(point.at - start) / MINUTE, point.runs]);
    assert.deepEqual(await at(MINUTE), [
      [0, 1],
      [3, 1],
      [73, 1],
    ]);
    assert.deepEqual(await at(HOUR), [
      [0, 2],
      [60, 1],
    ]);
    assert.deepEqual(await at(5 * MINUTE), [
      [0, 2],
      [70, 1],
    ]);
    const oneHour = await store.history({ from: start, to: start + HOUR, stepMs: 5 * MINUTE });
    assert.equal(total(oneHour.points).runs, 2);
  },

  'a job that is deleted at once leaves its runs behind, and so does a redriven one': async (harness) => {
    const { store } = harness;
    await rolledUp(harness);
    const job = await startOne(store);
    await settleOne(store, job, retryIn(0));
    await settleOne(store, await claimOne(store), die());
    await discard(store, { ids: [job.id] });
    const again = await bury(store);
    await redrive(store, { ids: [again] });
    await settleOne(store, await claimOne(store), complete);
    await rolledUp(harness);
    const { runs, failed, dead, completed, retries } = total((await read(store)).points);
    assert.deepEqual(
      { runs, failed, dead, completed, retries },
      { runs: 4, failed: 3, dead: 2, completed: 1, retries: 1 },
    );
  },

  'pruning takes nothing away': async (harness) => {
    const { store, advance } = harness;
    await settleOne(store, await startOne(store), complete);
    await rolledUp(harness);
    await settleOne(store, await startOne(store), complete);
    await advance(HOUR);
    const now = { completedMs: 0, deadMs: 0, cancelledMs: 0 };
    assert.equal((await pruneWith(store, now, 100)).jobs, 2);
    await rolledUp(harness);
    assert.equal(total((await read(store)).points).runs, 2);
  },

  'what ended while nothing added it up is added in parts': async (harness) => {
    const { store, advance } = harness;
    for (let part = 0; part < 5; part++) {
      await store.enqueue(newJobs(1_000));
      const { jobs } = await claim(store, { limit: 1_000 });
      await store.settle(jobs.map((job) => settlement(job, complete)));
      await advance(MINUTE);
    }
    await rolledUp(harness);
    assert.equal(total((await read(store)).points).runs, 5_000);
  },

  'minutes are forgotten after two days, hours are kept for ninety': async (harness) => {
    const { store, advance } = harness;
    await settleOne(store, await startOne(store), complete);
    await rolledUp(harness);
    await advance(3 * DAY);
    await settleOne(store, await startOne(store), complete);
    await rolledUp(harness);
    assert.equal(total((await read(store, MINUTE)).points).runs, 1);
    assert.equal(total((await read(store, HOUR)).points).runs, 2);
    await advance(91 * DAY);
    await settleOne(store, await startOne(store), complete);
    await rolledUp(harness);
    assert.equal(total((await read(store, HOUR)).points).runs, 1);
  },

  'names beyond two hundred are counted in the total alone': async (harness) => {
    const { store } = harness;
    await store.enqueue(Array.from({ length: 203 }, (_, name) => newJob({ name: `n${name}` })));
    const { jobs } = await claim(store, { limit: 203 });
    await store.settle(jobs.map((job) => settlement(job, complete)));
    await rolledUp(harness);
    const { points, names } = await read(store);
    assert.equal(total(points).runs, 203);
    assert.equal(names.length, 200);
    assert.equal(only(names.filter(({ name }) => name === 'n0')).runs, 1);
  },
});
