import assert from 'node:assert/strict';
import type { Aside, Decision } from '../../retry/decision.ts';
import type { ClaimedJob, NewJob, Store } from '../store.ts';
import {
  bury,
  changeAll,
  claim,
  claimOne,
  complete,
  crash,
  enqueueInLane,
  enqueueOne,
  HOUR,
  idsOf,
  jobOf,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  only,
  pruneWith,
  quota,
  redrive,
  retryIn,
  settlement,
  settleOne,
} from './builders.ts';
import { claimGated, claimProbe, trip } from './gate-builders.ts';
import { cases, type StoreCase } from './suite.ts';

const usual: Aside = { version: 1, isRejected: false };
/** A worker of the deploy that knows the new name. */
const knows: ReadonlyMap<string, number> = new Map([['new', 1]]);
/** Workers that do not: one of another deploy, and one that says nothing. */
const strangers = [{ knows: new Map([['old', 1]]) }, { knows: new Map() }, {}];
const keepAll = { completedMs: null, deadMs: null, cancelledMs: null };

function goAside(changes: Partial<Aside> = {}, delayMs = 0): Decision {
  return { kind: 'release', delayMs, rule: 'no-handler', aside: { ...usual, ...changes } };
}

/** Jobs that a worker has claimed and moved aside. No other job of the queue may be due before. */
async function putAside(
  store: Store,
  count: number,
  changes: Partial<NewJob> = {},
  aside: Partial<Aside> = {},
): Promise<string[]> {
  const jobs = newJobs(count, { name: 'new', ...changes });
  await store.enqueue(jobs);
  const claimed = (await claim(store, { limit: count, queues: [quota({ queue: changes.queue ?? 'default' })] })).jobs;
  assert.deepEqual(new Set(idsOf(claimed)), new Set(idsOf(jobs)), 'other jobs were due first');
  const answers = await store.settle(claimed.map((job) => settlement(job, goAside(aside))));
  assert.ok(answers.every((answer) => answer === 'settled'));
  return idsOf(jobs);
}

async function assertNothing(store: Store, request: Parameters<typeof claim>[1] = {}): Promise<void> {
  const answer = await claim(store, request);
  const seen = [answer.jobs, answer.nextDueAt, answer.suspectsWait, answer.gated];
  assert.deepEqual(seen, [[], null, false, []], 'a claim saw jobs that it may not read');
}

const who: StoreCase[] = cases('aside', {
  'a job that went aside is claimed at once by a worker that knows its name, and by no other': async ({ store }) => {
    const ids = await putAside(store, 3);
    for (const stranger of strangers) await assertNothing(store, stranger);
    const { jobs } = await claim(store, { knows });
    assert.deepEqual(idsOf(jobs), ids);
    assert.partialDeepStrictEqual(jobs[0], { name: 'new', queue: 'default', lane: 'fresh', run: 2, attempts: 1 });
  },

  'the run that handed it back is on the ledger, uncounted, and it keeps its due time': async ({ store }) => {
    const job = await claimOne(store, await enqueued(store));
    await settleOne(store, job, goAside());
    assert.partialDeepStrictEqual(await jobOf(store, job.id), {
      state: 'ready',
      lane: 'fresh',
      queue: 'default',
      attempts: 0,
      runs: 1,
      dueAt: job.dueAt,
      firstStartedAt: null,
    });
    const run = only(await store.runs(job.id));
    assert.deepEqual([run.outcome, run.counted, run.decision], ['released', false, goAside()]);
  },

  'jobs of a later version are for workers that have it, or one that is later still': async ({ store }) => {
    const [id] = await putAside(store, 1, { version: 3 }, { version: 3 });
    for (const version of [1, 2]) await assertNothing(store, { knows: new Map([['new', version]]) });
    const job = await claimOne(store, { knows: new Map([['new', 4]]) });
    assert.deepEqual([job.id, job.version], [id, 3]);
  },

  'a rejected payload is not for workers that avoid it, which get all other jobs of its name': async ({ store }) => {
    const [rejected] = await putAside(store, 1, {}, { isRejected: true });
    const avoiding = { knows, avoids: new Set(['new']) };
    await assertNothing(store, avoiding);
    const [other] = await putAside(store, 1);
    assert.deepEqual(idsOf((await claim(store, avoiding)).jobs), [other]);
    for (const stranger of strangers) await assertNothing(store, stranger);
    assert.deepEqual(idsOf((await claim(store, { knows, avoids: new Set(['other']) })).jobs), [rejected]);
  },

  'names and versions wait apart, each for its own workers': async ({ store }) => {
    const [first] = await putAside(store, 1);
    const [second] = await putAside(store, 1, { name: 'newer' });
    const [third] = await putAside(store, 1, {}, { version: 2 });
    assert.deepEqual(idsOf((await claim(store, { knows: new Map([['newer', 1]]) })).jobs), [second]);
    assert.deepEqual(idsOf((await claim(store, { knows })).jobs), [first]);
    assert.deepEqual(idsOf((await claim(store, { knows: new Map([['new', 2]]) })).jobs), [third]);
  },

  'jobs aside share places with the others of their queue and priority': async ({ store }) => {
    await putAside(store, 20);
    await store.enqueue(newJobs(20, { name: 'old' }));
    const names = [];
    for (let claims = 0; claims < 10; claims++) names.push((await claimOne(store, { knows })).name);
    for (const name of ['old', 'new'])
      assert.ok(names.filter((one) => one === name).length >= 3, `${name} of ${names}`);
    const { jobs } = await claim(store, { limit: 20, knows });
    for (const name of ['old', 'new']) assert.ok(jobs.filter((job) => job.name === name).length >= 8, name);
    assert.equal((await claim(store, { limit: 100, knows })).jobs.length, 10);
  },

  'a job aside of a lower priority number comes before the others': async ({ store }) => {
    const urgent = await putAside(store, 1, { priority: 1 });
    await store.enqueue(newJobs(2, { priority: 5 }));
    assert.deepEqual(idsOf((await claim(store, { limit: 1, knows })).jobs), urgent);
  },

  'many names and resources aside hide neither the other jobs nor each other': async ({ store }) => {
    const jobs = Array.from({ length: 150 }, (_, index) => newJob({ name: 'new', resource: `host ${index}` }));
    await store.enqueue(jobs);
    let moved = 0;
    while (moved < jobs.length) {
      const some = (await claim(store, { limit: 100 })).jobs;
      assert.ok(some.length > 0, 'a job is hidden');
      await store.settle(some.map((job) => settlement(job, goAside())));
      moved += some.length;
    }
    for (const stranger of strangers) await assertNothing(store, stranger);
    const mine = newJob({ name: 'old', resource: 'host 7' });
    await store.enqueue([mine]);
    assert.deepEqual(idsOf((await claim(store, strangers[0])).jobs), [mine.id]);
    const claimed: ClaimedJob[] = [];
    for (let claims = 0; claims < 50 && claimed.length < jobs.length; claims++) {
      claimed.push(...(await claim(store, { knows, limit: 50 })).jobs);
    }
    assert.equal(claimed.length, jobs.length);
  },

  'a hundred claims that may not read a job aside change nothing of it': async ({ store }) => {
    const [id] = await putAside(store, 1);
    for (let claims = 0; claims < 100; claims++) await claim(store, strangers[claims % 3]);
    assert.equal((await store.runs(id as string)).length, 1);
    assert.equal((await claimOne(store, { knows })).id, id);
  },
});

async function enqueued(store: Store): Promise<object> {
  await enqueueOne(store, { name: 'new' });
  return {};
}

const lanes: StoreCase[] = cases('aside', {
  'a retry of such a job waits among the retries of its name, and goes aside again': async ({ store }) => {
    const [id] = await putAside(store, 1);
    await settleOne(store, await claimOne(store, { knows }), retryIn(0));
    const again = await claimOne(store, strangers[0]);
    assert.deepEqual([again.id, again.lane, again.attempts], [id, 'retry', 2]);
    await settleOne(store, again, goAside());
    for (const stranger of strangers) await assertNothing(store, stranger);
    const last = await claimOne(store, { knows });
    assert.deepEqual([last.id, last.lane, last.attempts], [id, 'retry', 2]);
    await settleOne(store, last, complete);
    assert.equal((await jobOf(store, id as string)).state, 'completed');
  },

  'a job whose worker shuts down goes back among those that all may take': async ({ store }) => {
    const [id] = await putAside(store, 1);
    const job = await claimOne(store, { knows });
    await settleOne(store, job, { kind: 'release', delayMs: 0, rule: 'shutdown' });
    assert.equal((await claimOne(store)).id, id);
  },

  'the crash of a worker that has moved jobs leaves those aside, and the others are rescued': async (harness) => {
    const { store, advance } = harness;
    const [aside] = await putAside(store, 1);
    const lost = await claimOne(store, { knows });
    assert.equal(lost.id, aside);
    await advance(LEASE + MINUTE);
    const expired = only(await store.expired(10));
    assert.deepEqual([expired.id, expired.queue], [aside, 'default']);
    assert.deepEqual(await store.settle([crash(expired)]), ['settled']);
    assert.equal((await claimOne(store)).lane, 'retry');
  },

  'a settlement that is sent again moves a job aside once': async ({ store }) => {
    await enqueueOne(store, { name: 'new' });
    const job = await claimOne(store);
    const moved = settlement(job, goAside());
    assert.deepEqual(await store.settle([moved]), ['settled']);
    assert.deepEqual(await store.settle([moved]), ['settled']);
    assert.equal((await claim(store, { knows })).jobs.length, 1);
    assert.deepEqual(await store.settle([moved]), ['settled']);
    assert.equal((await claim(store, { knows })).jobs.length, 0);
  },

  'a cancel that came in meanwhile ends the job instead': async ({ store }) => {
    const id = await enqueueOne(store, { name: 'new' });
    const job = await claimOne(store);
    await store.cancel([id]);
    assert.deepEqual(await store.settle([settlement(job, goAside())]), ['cancelled']);
    await assertNothing(store, { knows });
  },

  'a suspect aside is tried only by workers that know it': async ({ store }) => {
    const [id] = await enqueueInLane(store, 'suspect', 1);
    const trial = { queues: [quota({ suspect: 1 })] };
    const suspect = await claimOne(store, trial);
    await settleOne(store, suspect, goAside());
    const knowing = { knows: new Map([[suspect.name, 1]]) };
    for (const stranger of strangers) {
      await assertNothing(store, stranger);
      await assertNothing(store, { ...trial, ...stranger });
    }
    assert.equal((await claim(store, knowing)).suspectsWait, true);
    assert.equal((await claimOne(store, { ...trial, ...knowing })).id, id);
  },

  'running retries that came from aside count for maxRetriesInFlight': async ({ store }) => {
    await enqueueInLane(store, 'retry', 3);
    const knowing = { knows: new Map([['email.send', 1]]) };
    const { jobs } = await claim(store);
    await store.settle(jobs.map((job) => settlement(job, goAside())));
    const bounded = { queues: [quota({ maxRetriesInFlight: 2 })], ...knowing };
    const started = (await claim(store, bounded)).jobs;
    assert.equal(started.length, 2);
    assert.equal((await claim(store, bounded)).jobs.length, 0);
    await settleOne(store, started[0] as ClaimedJob, complete);
    assert.equal((await claim(store, bounded)).jobs.length, 1);
  },
});

const times: StoreCase[] = cases('aside', {
  'nextDueAt tells a worker of delayed jobs aside that it may read, and no other': async ({ store, advance }) => {
    await enqueueOne(store, { name: 'new' });
    const job = await claimOne(store);
    await settleOne(store, job, goAside({}, HOUR));
    const dueAt = (await jobOf(store, job.id)).dueAt;
    for (const stranger of strangers) await assertNothing(store, stranger);
    assert.equal((await claim(store, { knows })).nextDueAt, dueAt);
    await advance(HOUR);
    for (const stranger of strangers) await assertNothing(store, stranger);
    assert.equal((await claimOne(store, { knows })).id, job.id);
  },

  'a hold of the queue or the resource holds jobs aside, too': async ({ store }) => {
    const ids = await putAside(store, 1, { resource: 'smtp' });
    for (const target of [{ queue: 'default' }, { resource: 'smtp' }]) {
      await store.hold(target, null);
      await assertNothing(store, { knows });
      await store.release(target);
    }
    await store.hold({ queue: 'default' }, null);
    await store.enqueue([newJob({ name: 'new', priority: 2 })]);
    await assertNothing(store, { knows });
    await store.release({ queue: 'default' });
    const { jobs } = await claim(store, { knows });
    assert.ok(idsOf(jobs).includes(ids[0] as string));
  },

  'a queue that is paused while jobs go aside holds those': async ({ store }) => {
    await enqueueOne(store, { name: 'new' });
    const job = await claimOne(store);
    await store.hold({ queue: 'default' }, null);
    await settleOne(store, job, goAside());
    await assertNothing(store, { knows });
    await store.release({ queue: 'default' });
    assert.equal((await claimOne(store, { knows })).id, job.id);
  },

  'behind a gate only a worker that knows them hears of jobs aside, and claims them as probes': async (harness) => {
    const { store, advance } = harness;
    const ids = await putAside(store, 3, { resource: 'smtp' });
    await trip(store, 'smtp');
    await advance(MINUTE);
    for (const stranger of strangers) {
      await assertNothing(store, stranger);
      assert.deepEqual((await claimGated(store, 'smtp', stranger)).jobs, []);
    }
    assert.deepEqual((await claim(store, { knows })).gated, ['smtp']);
    const probe = await claimProbe(harness, 'smtp', { knows });
    assert.ok(ids.includes(probe.id));
    assert.equal(probe.queue, 'default');
  },

  'a gate that is open when jobs go aside is asked for them': async (harness) => {
    const { store } = harness;
    await store.enqueue(newJobs(2, { name: 'new', resource: 'smtp' }));
    const { jobs } = await claim(store);
    await trip(store, 'smtp');
    await store.settle(jobs.map((job) => settlement(job, goAside())));
    await assertNothing(store, {});
    assert.ok(idsOf(jobs).includes((await claimProbe(harness, 'smtp', { knows })).id));
  },

  'jobs that have waited aside for too long go back among those that all may take': async ({ store, advance }) => {
    const unknown = await putAside(store, 2);
    const rejected = await putAside(store, 1, { priority: 6 }, { isRejected: true });
    await pruneWith(store, { ...keepAll, asideMs: HOUR }, 100);
    await advance(50 * MINUTE);
    await pruneWith(store, { ...keepAll, asideMs: HOUR }, 100);
    await advance(20 * MINUTE);
    await pruneWith(store, keepAll, 100);
    await assertNothing(store, strangers[0]);
    assert.equal((await pruneWith(store, { ...keepAll, asideMs: HOUR }, 1)).isDone, false);
    assert.equal((await pruneWith(store, { ...keepAll, asideMs: HOUR }, 100)).isDone, true);
    const { jobs } = await claim(store);
    assert.deepEqual(idsOf(jobs), [...unknown, ...rejected]);
    assert.deepEqual([jobs[0]?.queue, jobs[0]?.lane], ['default', 'fresh']);
  },

  'a job that was due long before it was enqueued waits aside as long as others': async ({ store, advance }) => {
    const [id] = await putAside(store, 1, { dueAt: 1_000 });
    await advance(30 * MINUTE);
    await pruneWith(store, { ...keepAll, asideMs: HOUR }, 100);
    await assertNothing(store);
    await advance(40 * MINUTE);
    await pruneWith(store, { ...keepAll, asideMs: HOUR }, 100);
    assert.equal((await claimOne(store)).id, id);
  },

  'pruning forgets where jobs waited aside once none does, and later ones are found again': async (harness) => {
    const { store, advance } = harness;
    for (let round = 0; round < 3; round++) {
      const ids = await putAside(store, 2, { resource: round === 1 ? 'smtp' : null });
      assert.deepEqual(idsOf((await claim(store, { knows })).jobs), ids);
      await advance(HOUR);
      for (let times = 0; times < 3; times++) {
        await pruneWith(store, { ...keepAll, asideMs: HOUR }, 100);
        await advance(10 * MINUTE);
      }
    }
  },
});

const operated: StoreCase[] = cases('aside', {
  'lists, counts and queues show jobs aside as waiting jobs of their queue': async ({ store }) => {
    const ids = await putAside(store, 2, { queue: 'mail' });
    assert.deepEqual(new Set(idsOf(await store.list({ queue: 'mail', state: 'ready', limit: 10 }))), new Set(ids));
    assert.deepEqual(new Set(idsOf(await store.list({ name: 'new', limit: 10 }))), new Set(ids));
    const row = only((await store.stats()).rows);
    assert.deepEqual([row.queue, row.name, row.states.ready, row.totals.runs.released], ['mail', 'new', 2, 2]);
    assert.deepEqual(await store.queues(), [{ queue: 'mail', paused: false }]);
  },

  'a job aside is cancelled like any other': async ({ store }) => {
    const [first, second] = await putAside(store, 2);
    assert.deepEqual(await store.cancel([first as string]), [{ id: first, result: 'cancelled' }]);
    assert.deepEqual(idsOf((await claim(store, { knows })).jobs), [second]);
    assert.partialDeepStrictEqual(await jobOf(store, first as string), { state: 'cancelled', queue: 'default' });
  },

  'a delayed job aside is run now by workers that know it, and selected by its queue': async ({ store }) => {
    await enqueueOne(store, { name: 'new' });
    const job = await claimOne(store);
    await settleOne(store, job, goAside({}, HOUR));
    assert.deepEqual((await changeAll(store, 'runNow', { queue: 'default' })).ids, [job.id]);
    assert.equal((await claimOne(store, { knows })).id, job.id);
  },

  'a redriven job waits among those that all may take, whatever it did before': async ({ store }) => {
    await putAside(store, 1);
    const job = await claimOne(store, { knows });
    await settleOne(store, job, { kind: 'dead', reason: 'unrecoverable', counted: true, rule: 'default' });
    assert.deepEqual(idsOf(await store.list({ state: 'dead', queue: 'default', limit: 10 })), [job.id]);
    assert.deepEqual((await redrive(store, { queue: 'default' })).ids, [job.id]);
    assert.equal((await claimOne(store)).lane, 'redrive');
  },

  'the version of a job is stored, and read back wherever it is shown': async ({ store }) => {
    const plain = await enqueueOne(store);
    const versioned = await enqueueOne(store, { version: 2 });
    const versions = async (): Promise<unknown> => (await store.get([plain, versioned])).map(({ version }) => version);
    assert.deepEqual(await versions(), [null, 2]);
    const { jobs } = await claim(store);
    assert.deepEqual(
      jobs.map(({ version }) => version),
      [null, 2],
    );
    assert.ok(jobs.every(({ policy }) => !('version' in policy)));
    await settleOne(store, jobs[0] as ClaimedJob, complete);
    await settleOne(store, jobs[1] as ClaimedJob, retryIn(0));
    assert.deepEqual(await versions(), [null, 2]);
    assert.equal((await claimOne(store)).version, 2);
    const dead = await bury(store, { version: 7 });
    await redrive(store, { ids: [dead] });
    assert.equal((await claimOne(store)).version, 7);
  },
});

export const asideCases: readonly StoreCase[] = [...who, ...lanes, ...times, ...operated];
