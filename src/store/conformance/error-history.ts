import assert from 'node:assert/strict';
import type { Decision } from '../../retry/decision.ts';
import { withFingerprint } from '../../untrusted/stored-error.ts';
import { ERROR_SERIES, ERROR_SERIES_KEPT } from '../error-history.ts';
import type { ErrorHistoryRequest, NewJob, Settlement, Store, StoredErrorSeries } from '../store.ts';
import {
  cancelNow,
  claim,
  claimOne,
  complete,
  crash,
  die,
  discard,
  giveBack,
  HOUR,
  hostileTexts,
  LEASE,
  MINUTE,
  newJobs,
  only,
  pruneWith,
  redrive,
  retryIn,
  settlement,
  settleOne,
  startOne,
  storedError,
} from './builders.ts';
import { rolledUp } from './history.ts';
import { cases, type StoreCase } from './suite.ts';

const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
const disk = withFingerprint(storedError('the disk is full'));
const network = withFingerprint(storedError('the network is away'));

type Filter = Pick<ErrorHistoryRequest, 'fingerprint' | 'name' | 'queue'>;

async function read(store: Store, stepMs = DAY, filter: Filter = {}): Promise<readonly StoredErrorSeries[]> {
  const { now } = await store.errorHistory({ from: 0, to: stepMs, stepMs });
  const end = Math.ceil(now / stepMs) * stepMs + stepMs;
  const from = end - Math.ceil(YEAR / stepMs) * stepMs;
  return (await store.errorHistory({ from, to: end, stepMs, ...filter })).series;
}

function sums(series: readonly StoredErrorSeries[]): [...string[], number, number][] {
  return series.map(({ fingerprint, queue, name, points }) => [
    fingerprint,
    queue,
    name,
    points.reduce((sum, { failures }) => sum + failures, 0),
    points.reduce((sum, { dead }) => sum + dead, 0),
  ]);
}

async function fail(store: Store, decision: Decision, error = disk, changes: Partial<NewJob> = {}): Promise<string> {
  const job = await startOne(store, changes);
  await settleOne(store, job, decision, { error });
  return job.id;
}

/** Each with an error of its own kind, in one name and queue. */
async function failEach(store: Store, kinds: readonly string[]): Promise<void> {
  await store.enqueue(newJobs(kinds.length));
  const { jobs } = await claim(store, { limit: kinds.length });
  const settlements = jobs.map((job, index): Settlement => {
    const error = { ...storedError('each another'), fingerprint: kinds[index] as string };
    return settlement(job, die(), { error });
  });
  await store.settle(settlements);
}

const kindsOf = (start: string, length: number): string[] => Array.from({ length }, (_, kind) => `${start}-${kind}`);

export const errorHistoryCases: readonly StoreCase[] = cases('errorHistory', {
  'a store in which nothing failed has no failures over time': async (harness) => {
    const { store } = harness;
    await settleOne(store, await startOne(store), complete);
    await settleOne(store, await startOne(store), giveBack('snooze', HOUR));
    await rolledUp(harness);
    const { series, now, upTo } = await store.errorHistory({ from: 0, to: DAY, stepMs: DAY });
    assert.deepEqual([series, await read(store)], [[], []]);
    assert.ok(upTo <= now && upTo > now - 5 * MINUTE, `up to ${now - upTo} ms ago`);
  },

  'failures and deaths are counted by kind of error, queue and job name, and each once': async (harness) => {
    const { store } = harness;
    await fail(store, retryIn(0));
    await settleOne(store, await claimOne(store), die(), { error: disk });
    await fail(store, retryIn(HOUR), network);
    await fail(store, die(), disk, { queue: 'other', name: 'a' });
    await fail(store, die(), disk, { name: 'a' });
    await rolledUp(harness);
    await rolledUp(harness);
    assert.deepEqual(
      new Set(sums(await read(store))),
      new Set([
        [disk.fingerprint, 'default', 'email.send', 2, 1],
        [disk.fingerprint, 'default', 'a', 1, 1],
        [disk.fingerprint, 'other', 'a', 1, 1],
        [network.fingerprint, 'default', 'email.send', 1, 0],
      ]),
    );
    assert.equal((await read(store))[0]?.name, 'email.send');
    assert.deepEqual(await read(store, HOUR).then(sums), await read(store, 5 * MINUTE).then(sums));
  },

  'the same runs are counted as in the error groups': async (harness) => {
    const { store, advance } = harness;
    await settleOne(store, await startOne(store), giveBack('defer', HOUR), { outcome: 'deferred', error: disk });
    const lost = await startOne(store);
    await advance(LEASE + MINUTE);
    await store.settle([{ ...crash(lost, retryIn(HOUR)), error: disk }]);
    // What a cancelled run threw is no failure; what a run threw that a cancel overruled is one.
    await settleOne(store, await startOne(store), cancelNow, { outcome: 'cancelled', error: disk });
    const told = await startOne(store);
    await store.cancel([told.id]);
    await store.settle([settlement(told, retryIn(0), { error: disk })]);
    await fail(store, die(), storedError('of an old version') as typeof disk);
    await fail(store, die());
    await rolledUp(harness);
    assert.deepEqual(sums(await read(store)), [[disk.fingerprint, 'default', 'email.send', 4, 1]]);
    assert.equal(only(await store.errorGroups({ limit: 9 })).failures, 4);
  },

  'a step has what was settled in it, in five minutes and in hours': async (harness) => {
    const { store, advance } = harness;
    const { now } = await store.errorHistory({ from: 0, to: DAY, stepMs: DAY });
    // To the start of an hour.
    await advance(HOUR - (now % HOUR) + MINUTE / 2);
    for (const wait of [MINUTE, 7 * MINUTE, HOUR, 0]) {
      await fail(store, retryIn(DAY));
      await advance(wait);
    }
    await rolledUp(harness);
    const start = Math.floor(now / HOUR + 1) * HOUR;
    const at = async (stepMs: number): Promise<number[][]> =>
      only(await read(store, stepMs)).points.map((point) => [(point.at - start) / MINUTE, point.failures]);
    assert.deepEqual(await at(5 * MINUTE), [
      [0, 2],
      [5, 1],
      [65, 1],
    ]);
    assert.deepEqual(await at(30 * MINUTE), [
      [0, 3],
      [60, 1],
    ]);
    assert.deepEqual(await at(HOUR), [
      [0, 3],
      [60, 1],
    ]);
    const { series } = await store.errorHistory({ from: start, to: start + 5 * MINUTE, stepMs: 5 * MINUTE });
    assert.deepEqual(only(series).points, [{ at: start, failures: 2, dead: 0 }]);
  },

  'deleting, pruning and redriving jobs takes nothing away, and adds nothing': async (harness) => {
    const { store, advance } = harness;
    await rolledUp(harness);
    const discarded = await fail(store, retryIn(0));
    await settleOne(store, await claimOne(store), die(), { error: disk });
    await discard(store, { ids: [discarded] });
    await redrive(store, { ids: [await fail(store, die())] });
    await settleOne(store, await claimOne(store), die(), { error: network });
    await rolledUp(harness);
    await fail(store, die());
    await advance(HOUR);
    assert.equal((await pruneWith(store, { completedMs: 0, deadMs: 0, cancelledMs: 0 }, 100)).jobs, 2);
    await rolledUp(harness);
    assert.deepEqual(sums(await read(store)), [
      [disk.fingerprint, 'default', 'email.send', 4, 3],
      [network.fingerprint, 'default', 'email.send', 1, 1],
    ]);
  },

  'series are chosen by the start of the fingerprint, by job name and by queue': async (harness) => {
    const { store } = harness;
    await fail(store, die(), disk, { name: 'a', queue: 'one' });
    await fail(store, die(), disk, { name: 'b', queue: 'two' });
    await fail(store, die(), network, { name: 'b', queue: 'one' });
    await rolledUp(harness);
    const chosen = async (filter: Filter): Promise<string[]> =>
      (await read(store, DAY, filter)).map(({ queue, name }) => `${queue} ${name}`).sort();
    assert.deepEqual(await chosen({}), ['one a', 'one b', 'two b']);
    assert.deepEqual(await chosen({ fingerprint: disk.fingerprint.slice(0, 8) }), ['one a', 'two b']);
    assert.deepEqual(await chosen({ name: 'b' }), ['one b', 'two b']);
    assert.deepEqual(await chosen({ queue: 'one' }), ['one a', 'one b']);
    assert.deepEqual(await chosen({ fingerprint: disk.fingerprint, name: 'b', queue: 'one' }), []);
    assert.deepEqual(await chosen({ name: 'c' }), []);
    assert.deepEqual(await chosen({ queue: 'c' }), []);
    for (const text of hostileTexts) assert.deepEqual(await chosen({ fingerprint: text }), []);
  },

  'an error with hostile text is counted like any other': async (harness) => {
    const { store } = harness;
    const message = `${hostileTexts.join(' ')} ","fingerprint":"of the message`;
    const error = withFingerprint({ ...storedError(message), stack: message });
    await fail(store, die(), error);
    await fail(store, retryIn(HOUR), error);
    await rolledUp(harness);
    assert.deepEqual(sums(await read(store)), [[error.fingerprint, 'default', 'email.send', 2, 1]]);
  },

  'steps of five minutes are forgotten after two days, hours are kept for ninety': async (harness) => {
    const { store, advance } = harness;
    await fail(store, die());
    await rolledUp(harness);
    await advance(3 * DAY);
    await fail(store, die());
    await rolledUp(harness);
    assert.equal(only(sums(await read(store, 5 * MINUTE)))[3], 1);
    assert.equal(only(sums(await read(store, HOUR)))[3], 2);
    await advance(91 * DAY);
    await fail(store, die(), network);
    await rolledUp(harness);
    assert.deepEqual(sums(await read(store, HOUR)), [[network.fingerprint, 'default', 'email.send', 1, 1]]);
  },

  'when many kinds of error come, those that failed longest ago make room': async (harness) => {
    const { store, advance } = harness;
    await failEach(store, kindsOf('old', ERROR_SERIES + 3));
    await rolledUp(harness);
    assert.ok((await read(store)).length <= ERROR_SERIES);
    await advance(2 * HOUR);
    await failEach(store, kindsOf('old', 3));
    await rolledUp(harness);
    assert.equal((await read(store)).length, ERROR_SERIES_KEPT);
    await failEach(store, ['late']);
    await rolledUp(harness);
    assert.equal(only(sums(await read(store, DAY, { fingerprint: 'late' })))[3], 1);
    for (const kind of kindsOf('old', 3)) {
      const [series] = await read(store, DAY, { fingerprint: kind });
      assert.equal(series?.fingerprint, kind);
    }
  },
});
