import assert from 'node:assert/strict';
import type { Decision } from '../../retry/decision.ts';
import { withFingerprint } from '../../untrusted/stored-error.ts';
import { type ErrorGroup, type ErrorGroupFilter, GROUP_KEPT_MS } from '../error-groups.ts';
import type { ClaimedJob, NewJob, Settlement, Store } from '../store.ts';
import {
  bury,
  cancelNow,
  claimOne,
  complete,
  die,
  discard,
  enqueueOne,
  giveBack,
  HOUR,
  hostileTexts,
  LEASE,
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
  storedError,
  timeOf,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const disk = withFingerprint(storedError('the disk is full'));
const network = withFingerprint(storedError('the network is away'));

function groups(store: Store, filter: Partial<ErrorGroupFilter> = {}): Promise<ErrorGroup[]> {
  return store.errorGroups({ limit: 50, ...filter });
}

async function groupOf(store: Store, error = disk): Promise<ErrorGroup> {
  return only(await groups(store, { fingerprint: error.fingerprint }));
}

function fail(store: Store, job: ClaimedJob, decision: Decision = retryIn(0), error = disk): Promise<void> {
  return settleOne(store, job, decision, { error });
}

/** A job that has failed once, and waits. */
async function failOne(store: Store, changes: Partial<NewJob> = {}, error = disk): Promise<string> {
  const job = await startOne(store, changes);
  await fail(store, job, retryIn(0), error);
  return job.id;
}

async function buryOne(store: Store, changes: Partial<NewJob> = {}, error = disk): Promise<string> {
  const job = await startOne(store, changes);
  await fail(store, job, die(), error);
  return job.id;
}

export const errorGroupCases: readonly StoreCase[] = cases('errorGroups', {
  'a store in which nothing failed has no error group': async ({ store }) => {
    await settleOne(store, await startOne(store), complete);
    await bury(store);
    assert.deepEqual(await groups(store), []);
  },

  'a failed job is failing in its group, with a sample, until it completes': async ({ store, advance }) => {
    const job = await startOne(store);
    await fail(store, job);
    const group = await groupOf(store);
    assert.deepEqual(group, {
      fingerprint: disk.fingerprint,
      failing: 1,
      dead: 0,
      failures: 1,
      jobs: 1,
      recovered: 0,
      recoveredShare: null,
      recoveredAt: [],
      redriven: 0,
      recurred: 0,
      firstSeenAt: group.firstSeenAt,
      lastSeenAt: group.firstSeenAt,
      names: [{ name: 'email.send', queue: 'default', failing: 1, dead: 0, failures: 1 }],
      sample: { jobId: job.id, error: disk },
    });
    await advance(MINUTE);
    await fail(store, await claimOne(store));
    const again = await groupOf(store);
    assert.partialDeepStrictEqual(again, { failing: 1, failures: 2, jobs: 1, firstSeenAt: group.firstSeenAt });
    assert.ok(again.lastSeenAt >= group.lastSeenAt + MINUTE);
    await settleOne(store, await claimOne(store), complete);
    assert.partialDeepStrictEqual(await groupOf(store), {
      failing: 0,
      failures: 2,
      recovered: 1,
      recoveredShare: 1,
      recoveredAt: [{ attempt: 3, jobs: 1 }],
    });
  },

  'a group counts its jobs by name and queue': async ({ store }) => {
    await buryOne(store, { name: 'a' });
    await buryOne(store, { name: 'a', queue: 'other' });
    await failOne(store, { name: 'b', queue: 'third' });
    const group = await groupOf(store);
    assert.partialDeepStrictEqual(group, { failing: 1, dead: 2, failures: 3, jobs: 3 });
    assert.equal(group.names.length, 3);
    const ofA = only(await groups(store, { name: 'a' }));
    assert.partialDeepStrictEqual(ofA, { failing: 0, dead: 2, failures: 2 });
    const ofOther = only(await groups(store, { name: 'a', queue: 'other' }));
    assert.deepEqual(ofOther.names, [{ name: 'a', queue: 'other', failing: 0, dead: 1, failures: 1 }]);
    assert.deepEqual(await groups(store, { name: 'c' }), []);
    assert.deepEqual(await groups(store, { queue: 'c' }), []);
  },

  'jobs of one name with different policies are counted together': async ({ store }) => {
    const policy = { ...(await startOne(store)).policy, maxAttempts: 9 };
    await buryOne(store);
    await buryOne(store, { policy });
    assert.deepEqual((await groupOf(store)).names, [
      { name: 'email.send', queue: 'default', failing: 0, dead: 2, failures: 2 },
    ]);
  },

  'another error moves a job to another group': async ({ store }) => {
    await failOne(store);
    await fail(store, await claimOne(store), retryIn(0), network);
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 0, failures: 1, jobs: 1, recovered: 0 });
    assert.equal((await groupOf(store)).recoveredShare, 0);
    assert.partialDeepStrictEqual(await groupOf(store, network), { failing: 1, failures: 1, jobs: 1 });
    await fail(store, await claimOne(store), die(), disk);
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 0, dead: 1, failures: 2, jobs: 2 });
    assert.partialDeepStrictEqual(await groupOf(store, network), { failing: 0, dead: 0, jobs: 1 });
  },

  'a failing job stays in its group when a run ends without an error': async ({ store }) => {
    const id = await failOne(store);
    await settleOne(store, await claimOne(store), giveBack('release'));
    await settleOne(store, await claimOne(store), giveBack('snooze'));
    await settleOne(store, await claimOne(store), retryIn(0), {
      outcome: 'failed',
      error: storedError('of an old version'),
    });
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 1, failures: 1, jobs: 1 });
    await settleOne(store, await claimOne(store), die('deadline'), { outcome: 'released', error: null });
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 0, dead: 1, failures: 1 });
    await discard(store, { ids: [id] });
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 0, dead: 0, failures: 1 });
  },

  'a deferred failure and a crash count as failures': async ({ store, advance }) => {
    const job = await startOne(store);
    await settleOne(store, job, giveBack('defer'), { outcome: 'deferred', error: disk });
    await claimOne(store);
    await advance(LEASE + MINUTE);
    const expired = only(await store.expired(10));
    await settleOne(store, expired, retryIn(0), { outcome: 'crashed', error: network });
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 0, failures: 1 });
    assert.partialDeepStrictEqual(await groupOf(store, network), { failing: 1, failures: 1 });
  },

  'a cancelled job leaves its group, whether it waited or ran': async ({ store }) => {
    await store.cancel([await failOne(store)]);
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 0, dead: 0, jobs: 1 });

    await failOne(store);
    const running = await claimOne(store);
    await settleOne(store, running, cancelNow, { outcome: 'cancelled', error: network });
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 0, jobs: 2 });
    assert.deepEqual(await groups(store, { fingerprint: network.fingerprint }), []);

    const told = await startOne(store);
    await store.cancel([told.id]);
    assert.deepEqual(await store.settle([settlement(told, retryIn(0), { error: disk })]), ['cancelled']);
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 0, dead: 0, jobs: 3, failures: 3 });
  },

  'a redriven job is failing again, and a recurrence is counted once': async ({ store }) => {
    const ids = [await buryOne(store), await buryOne(store)];
    await redrive(store, { ids });
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 2, dead: 0, redriven: 2, recurred: 0, jobs: 2 });
    await settleOne(store, await claimOne(store), giveBack('release'));
    await fail(store, await claimOne(store), retryIn(0));
    await fail(store, await claimOne(store), retryIn(HOUR));
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 2, redriven: 2, recurred: 1, jobs: 2 });
    await fail(store, await claimOne(store), die(), network);
    assert.partialDeepStrictEqual(await groupOf(store), { failing: 1, dead: 0, recurred: 1 });
    assert.partialDeepStrictEqual(await groupOf(store, network), { dead: 1, redriven: 0, recurred: 0 });
  },

  'a redriven job that completes has recovered at its first attempt': async ({ store }) => {
    await redrive(store, { ids: [await buryOne(store)] });
    await settleOne(store, await claimOne(store), complete);
    const { recovered, recoveredAt, failing, dead } = await groupOf(store);
    assert.deepEqual([recovered, recoveredAt, failing, dead], [1, [{ attempt: 1, jobs: 1 }], 0, 0]);
  },

  'discarded and pruned jobs leave their group; what it has counted stays': async ({ store, advance }) => {
    const [first] = [await buryOne(store), await buryOne(store)];
    await discard(store, { ids: [first as string] });
    assert.partialDeepStrictEqual(await groupOf(store), { dead: 1, failures: 2, jobs: 2 });
    await advance(2 * HOUR);
    await pruneWith(store, { completedMs: null, deadMs: HOUR, cancelledMs: null }, 10);
    assert.partialDeepStrictEqual(await groupOf(store), { dead: 0, failures: 2, jobs: 2 });
    assert.equal((await groupOf(store)).sample?.jobId, first);
  },

  'pruning adds counters up and changes none of them': async ({ store }) => {
    const ids = [await buryOne(store), await buryOne(store, { name: 'b' }), await buryOne(store, {}, network)];
    await redrive(store, { ids: ids.slice(0, 2) });
    await settleOne(store, await claimOne(store), complete);
    await failOne(store, { queue: 'other' });
    const before = await groups(store);
    await pruneWith(store, { completedMs: null, deadMs: null, cancelledMs: null }, 10);
    assert.deepEqual(await groups(store), before);
    await pruneWith(store, { completedMs: null, deadMs: null, cancelledMs: null }, 10);
    assert.deepEqual(await groups(store), before);
  },

  'a group is kept while it has jobs, and goes when it had none for a week': async ({ store, advance }) => {
    const never = { completedMs: null, deadMs: null, cancelledMs: null };
    const id = await buryOne(store);
    await advance(GROUP_KEPT_MS + HOUR);
    await pruneWith(store, never, 10);
    assert.partialDeepStrictEqual(await groupOf(store), { dead: 1 });
    await discard(store, { ids: [id] });
    await pruneWith(store, never, 10);
    assert.deepEqual(await groups(store), []);
    await buryOne(store);
    assert.partialDeepStrictEqual(await groupOf(store), { dead: 1, failures: 1, jobs: 1 });
    assert.notEqual((await groupOf(store)).sample?.jobId, id);
  },

  'groups come with the most failing and dead jobs first, and no more than asked for': async ({ store }) => {
    for (let n = 0; n < 3; n++) await buryOne(store, {}, network);
    await buryOne(store);
    await failOne(store);
    const found = await groups(store);
    assert.deepEqual(
      found.map(({ fingerprint }) => fingerprint),
      [network.fingerprint, disk.fingerprint],
    );
    assert.deepEqual(await groups(store, { limit: 1 }), found.slice(0, 1));
  },

  'groups are chosen by state, by time and by the start of the fingerprint': async ({ store, advance }) => {
    await buryOne(store, {}, network);
    await advance(HOUR);
    const since = (await timeOf(store)) - MINUTE;
    await failOne(store, { delayMs: 0 });
    const chosen = async (filter: Partial<ErrorGroupFilter>): Promise<string[]> =>
      (await groups(store, filter)).map(({ fingerprint }) => fingerprint).sort();
    assert.deepEqual(await chosen({ state: 'dead' }), [network.fingerprint]);
    assert.deepEqual(await chosen({ state: 'failing' }), [disk.fingerprint]);
    assert.deepEqual(await chosen({ since }), [disk.fingerprint]);
    assert.deepEqual(await chosen({ since: since - 2 * HOUR }), [disk.fingerprint, network.fingerprint].sort());
    assert.deepEqual(await chosen({ fingerprint: disk.fingerprint.slice(0, 8) }), [disk.fingerprint]);
    assert.deepEqual(await chosen({ fingerprint: '' }), [disk.fingerprint, network.fingerprint].sort());
    for (const text of hostileTexts) assert.deepEqual(await chosen({ fingerprint: text }), []);
  },

  'a batch with several errors counts each job where it belongs': async ({ store }) => {
    await store.enqueue(newJobs(12));
    const { jobs } = await store.claim({ worker: 'w', leaseMs: LEASE, limit: 12, queues: [quota()] });
    const settlements = jobs.map((job, index): Settlement => {
      const error = [disk, network, null][index % 3] as typeof disk | null;
      if (error === null) return settlement(job, complete);
      return settlement(job, index < 6 ? die() : retryIn(HOUR), { error });
    });
    await store.settle(settlements);
    for (const error of [disk, network]) {
      assert.partialDeepStrictEqual(await groupOf(store, error), { dead: 2, failing: 2, failures: 4, jobs: 4 });
    }
    await store.settle(settlements);
    assert.partialDeepStrictEqual(await groupOf(store), { dead: 2, failing: 2, failures: 4, jobs: 4 });
  },

  'a stale settlement changes no group': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(LEASE + MINUTE);
    await settleOne(store, only(await store.expired(10)), retryIn(0), { outcome: 'crashed', error: network });
    assert.deepEqual(await store.settle([settlement(job, die(), { error: disk })]), ['stale']);
    assert.deepEqual(await groups(store, { fingerprint: disk.fingerprint }), []);
    assert.partialDeepStrictEqual(await groupOf(store, network), { failing: 1, failures: 1 });
  },

  'a sample keeps hostile text as it is': async ({ store }) => {
    const error = withFingerprint({ ...storedError(hostileTexts.join(' ')), stack: hostileTexts.join('\n') });
    const id = await enqueueOne(store);
    await fail(store, await claimOne(store), die(), error);
    assert.deepEqual((await groupOf(store, error)).sample, { jobId: id, error });
  },
});
