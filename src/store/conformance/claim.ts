import assert from 'node:assert/strict';
import {
  claim,
  claimOne,
  complete,
  enqueueInLane,
  enqueueOne,
  giveBack,
  HOUR,
  idsOf,
  jobOf,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  policy,
  quota,
  retryIn,
  settlement,
  settleOne,
  startOne,
  storedError,
  timeOf,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const taking: StoreCase[] = cases('claim', {
  'a claim hands out all that a run needs to know': async ({ store }) => {
    const given = newJob({ key: 'k', resource: 'smtp', priority: 2 });
    await store.enqueue([given]);
    const { jobs, now } = await claim(store, { worker: 'w', leaseMs: HOUR });
    const { enqueuedAt } = await jobOf(store, given.id);
    assert.deepEqual(jobs, [
      {
        id: given.id,
        run: 1,
        worker: 'w',
        name: given.name,
        queue: given.queue,
        homeQueue: given.queue,
        resource: 'smtp',
        limits: [],
        lane: 'fresh',
        priority: 2,
        payload: given.payload,
        policy,
        attempts: 1,
        crashes: 0,
        givenBack: 0,
        deferredSince: null,
        snoozes: 0,
        enqueuedAt,
        dueAt: enqueuedAt,
        availableAt: enqueuedAt,
        firstStartedAt: now,
        claimedAt: now,
        leaseEndsAt: now + HOUR,
        previousDelayMs: null,
        lastError: null,
        cancelRequested: false,
        alone: false,
        gateEpoch: 0,
        version: null,
        trace: null,
        spent: null,
      },
    ]);
  },

  'a claimed job runs, and its run and attempt are counted already': async ({ store }) => {
    const job = await startOne(store);
    assert.partialDeepStrictEqual(await jobOf(store, job.id), {
      state: 'running',
      runs: 1,
      attempts: 1,
      worker: job.worker,
      leaseEndsAt: job.leaseEndsAt,
      firstStartedAt: job.claimedAt,
      finishedAt: null,
    });
  },

  'a later run counts on and remembers the one before': async ({ store, advance }) => {
    const first = await startOne(store);
    await settleOne(store, first, retryIn(MINUTE), { error: storedError('first') });
    await advance(2 * MINUTE);
    const second = await claimOne(store, { worker: 'worker-2' });
    assert.partialDeepStrictEqual(second, {
      id: first.id,
      run: 2,
      worker: 'worker-2',
      lane: 'retry',
      attempts: 2,
      firstStartedAt: first.firstStartedAt,
      availableAt: second.dueAt,
      previousDelayMs: MINUTE,
      lastError: storedError('first'),
    });
    assert.ok(second.dueAt >= first.claimedAt + MINUTE && second.dueAt <= second.claimedAt);
  },

  'a retry from a queue of its own still knows where it was enqueued, also when it is rescued': async ({
    store,
    advance,
  }) => {
    await settleOne(store, await startOne(store, { queue: 'mail', retryQueue: 'mail.retry' }), retryIn(0));
    const again = await claimOne(store, { queues: [quota({ queue: 'mail.retry' })] });
    assert.partialDeepStrictEqual(again, { queue: 'mail.retry', homeQueue: 'mail' });
    await advance(2 * LEASE);
    assert.deepEqual(await store.expired(10), [again]);
  },

  'a job could first have run when it fell due, but not before it was accepted': async ({ store, advance }) => {
    const overdue = await startOne(store, { dueAt: (await timeOf(store)) - HOUR });
    assert.equal(overdue.availableAt, overdue.enqueuedAt);
    assert.equal(overdue.dueAt < overdue.enqueuedAt, true);
    await enqueueOne(store, { delayMs: HOUR });
    await advance(2 * HOUR);
    const delayed = await claimOne(store);
    assert.equal(delayed.availableAt, delayed.dueAt);
    assert.equal(delayed.dueAt, delayed.enqueuedAt + HOUR);
  },

  'a first run that was handed back was no start': async ({ store, advance }) => {
    const deferred = await startOne(store, { queue: 'other' });
    await settleOne(store, deferred, giveBack('defer', MINUTE));
    // A deferred run has run; only its attempt is given back.
    assert.equal((await jobOf(store, deferred.id)).firstStartedAt, deferred.claimedAt);
    const first = await startOne(store);
    await settleOne(store, first, giveBack('release', MINUTE));
    assert.equal((await jobOf(store, first.id)).firstStartedAt, null);
    await advance(HOUR);
    const second = await claimOne(store);
    assert.partialDeepStrictEqual(second, { firstStartedAt: second.claimedAt, availableAt: first.availableAt });
    await settleOne(store, second, retryIn(MINUTE));
    await advance(HOUR);
    const third = await claimOne(store);
    // Only the first: the deadline runs on from the start that was one.
    await settleOne(store, third, giveBack('release', MINUTE));
    await advance(HOUR);
    assert.partialDeepStrictEqual(await claimOne(store), {
      firstStartedAt: second.claimedAt,
      availableAt: third.dueAt,
    });
  },

  'a first run whose job is cancelled while it is handed back keeps its start': async ({ store }) => {
    const job = await startOne(store);
    await store.cancel([job.id]);
    assert.deepEqual(await store.settle([settlement(job, giveBack('release', MINUTE))]), ['cancelled']);
    assert.equal((await jobOf(store, job.id)).firstStartedAt, job.claimedAt);
  },

  'a first run that was snoozed was a start': async ({ store, advance }) => {
    const first = await startOne(store);
    await settleOne(store, first, giveBack('snooze', MINUTE));
    await advance(HOUR);
    const second = await claimOne(store);
    assert.partialDeepStrictEqual(second, { firstStartedAt: first.claimedAt, availableAt: second.dueAt });
  },

  'priorities come first over all resources of a queue, and inside a resource the due time': async ({
    store,
    advance,
  }) => {
    const given = [
      newJob({ resource: 'a', priority: 5, delayMs: MINUTE }),
      newJob({ resource: 'a', priority: 5 }),
      newJob({ resource: 'b', priority: 1 }),
      newJob({ resource: null, priority: 9 }),
    ];
    await store.enqueue(given);
    await advance(HOUR);
    const [later, sooner, first, last] = idsOf(given);
    assert.deepEqual(idsOf((await claim(store, { limit: 2 })).jobs), [first, sooner]);
    assert.deepEqual(idsOf((await claim(store)).jobs), [later, last]);
  },

  'the next due time is the earliest over all queues, lanes and priorities': async ({ store }) => {
    const retried = await startOne(store, { queue: 'a' });
    await settleOne(store, retried, retryIn(20 * MINUTE));
    await store.enqueue([
      newJob({ queue: 'a', delayMs: 30 * MINUTE, priority: 0 }),
      newJob({ queue: 'a', delayMs: 40 * MINUTE }),
      newJob({ queue: 'b', delayMs: 50 * MINUTE }),
    ]);
    const next = async (...queues: string[]): Promise<number | null> =>
      (await claim(store, { queues: queues.map((queue) => quota({ queue })) })).nextDueAt;
    const { dueAt } = await jobOf(store, retried.id);
    assert.equal(await next('a', 'b'), dueAt);
    assert.equal(await next('b', 'a'), dueAt);
    await store.cancel([retried.id]);
    const [last, , first] = await store.list({ limit: 3 });
    assert.equal(await next('b', 'a'), first?.dueAt);
    assert.equal(await next('a', 'b'), first?.dueAt);
    assert.equal(await next('b'), last?.dueAt);
  },

  'a job is not claimed before it is due': async ({ store, advance }) => {
    const id = await enqueueOne(store, { delayMs: HOUR });
    await advance(30 * MINUTE);
    assert.deepEqual((await claim(store)).jobs, []);
    await advance(30 * MINUTE);
    assert.deepEqual(idsOf((await claim(store)).jobs), [id]);
  },

  'a claim takes no more than its limit': async ({ store }) => {
    await store.enqueue(newJobs(5));
    assert.equal((await claim(store, { limit: 3 })).jobs.length, 3);
    assert.equal((await claim(store, { limit: 0 })).jobs.length, 0);
    assert.equal((await claim(store, { limit: 3 })).jobs.length, 2);
  },

  'a claim takes only from the queues it names': async ({ store }) => {
    await store.enqueue([newJob({ queue: 'a' }), newJob({ queue: 'b' })]);
    const { jobs } = await claim(store, { queues: [quota({ queue: 'b' }), quota({ queue: 'unheard of' })] });
    assert.deepEqual(
      jobs.map((job) => job.queue),
      ['b'],
    );
    assert.deepEqual((await claim(store, { queues: [] })).jobs, []);
  },

  'a job under a lease is not claimed again, not even when the lease has run out': async ({ store, advance }) => {
    await startOne(store);
    assert.deepEqual((await claim(store)).jobs, []);
    await advance(2 * LEASE);
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'a finished or cancelled job is not claimed': async ({ store }) => {
    await settleOne(store, await startOne(store), complete);
    await store.cancel([await enqueueOne(store)]);
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'every job goes to one of many claims at once': async ({ store }) => {
    const jobs = newJobs(50);
    await store.enqueue(jobs);
    const workers = Array.from({ length: 20 }, (_, index) => `worker-${index}`);
    const claims = await Promise.all(workers.map((worker) => claim(store, { worker, limit: 4 })));
    const taken = claims.flatMap(({ jobs }) => idsOf(jobs));
    assert.deepEqual(taken.toSorted(), idsOf(jobs).toSorted());
  },

  'a backlog of 5,000 is claimed in order, each job once': async ({ store }) => {
    const jobs = newJobs(5_000);
    await store.enqueue(jobs);
    const taken: string[] = [];
    for (let page = 0; page < 5; page++) taken.push(...idsOf((await claim(store, { limit: 1_000 })).jobs));
    assert.deepEqual(taken, idsOf(jobs));
  },
});

const ordering: StoreCase[] = cases('claim', {
  'inside a lane the lower priority number goes first': async ({ store }) => {
    const jobs = [5, 0, 9, 3].map((priority) => newJob({ priority }));
    await store.enqueue(jobs);
    const taken = (await claim(store)).jobs.map((job) => job.priority);
    assert.deepEqual(taken, [0, 3, 5, 9]);
  },

  'inside a priority the job that fell due first goes first': async ({ store, advance }) => {
    const late = newJob({ delayMs: 30 * MINUTE });
    const early = newJob({ delayMs: 10 * MINUTE });
    const middle = newJob({ delayMs: 20 * MINUTE });
    await store.enqueue([late, early, middle]);
    await advance(HOUR);
    assert.deepEqual(idsOf((await claim(store)).jobs), [early.id, middle.id, late.id]);
  },

  'jobs due at the same time go in the order they were accepted': async ({ store }) => {
    const dueAt = (await timeOf(store)) - HOUR;
    // Ids fall while the order rises, so that sorting by id would show.
    const jobs = newJobs(20, { dueAt }).reverse();
    await store.enqueue(jobs.slice(0, 10));
    await store.enqueue(jobs.slice(10));
    const taken: string[] = [];
    for (let turn = 0; turn < 20; turn++) taken.push((await claimOne(store)).id);
    assert.deepEqual(taken, idsOf(jobs));
  },

  'a job that was given back for now keeps its place in the line': async ({ store }) => {
    const dueAt = (await timeOf(store)) - HOUR;
    const [first, second] = [newJob({ dueAt }), newJob({ dueAt })];
    await store.enqueue([first, second]);
    const job = await claimOne(store);
    assert.equal(job.id, first.id);
    await settleOne(store, job, giveBack('release'));
    assert.deepEqual(idsOf((await claim(store)).jobs), [first.id, second.id]);
  },

  'a due time years ahead is kept to the millisecond': async ({ store }) => {
    const delayMs = 10 * 365 * 24 * HOUR + 1;
    const job = await jobOf(store, await enqueueOne(store, { delayMs }));
    assert.equal(job.dueAt - job.enqueuedAt, delayMs);
    assert.equal((await claim(store)).nextDueAt, job.dueAt);
  },
});

const sharing: StoreCase[] = cases('claim', {
  'each queue gets its share before any takes the rest': async ({ store }) => {
    await store.enqueue([...newJobs(10, { queue: 'a' }), ...newJobs(10, { queue: 'b' })]);
    const queues = [quota({ queue: 'a', share: 3 }), quota({ queue: 'b', share: 2 })];
    const { jobs } = await claim(store, { limit: 8, queues });
    assert.equal(jobs.filter((job) => job.queue === 'a').length, 6);
    assert.equal(jobs.filter((job) => job.queue === 'b').length, 2);
  },

  'what one queue leaves of its share another takes': async ({ store }) => {
    await store.enqueue([newJob({ queue: 'a' }), ...newJobs(10, { queue: 'b' })]);
    const queues = [quota({ queue: 'a', share: 4 }), quota({ queue: 'b', share: 4 })];
    const { jobs } = await claim(store, { limit: 8, queues });
    assert.equal(jobs.filter((job) => job.queue === 'a').length, 1);
    assert.equal(jobs.filter((job) => job.queue === 'b').length, 7);
  },
});

const lookingAhead: StoreCase[] = cases('claim', {
  'a claim that was not filled tells when the next job falls due': async ({ store, advance }) => {
    await enqueueOne(store);
    const soon = await jobOf(store, await enqueueOne(store, { delayMs: MINUTE }));
    const later = await jobOf(store, await enqueueOne(store, { delayMs: HOUR, priority: 0 }));
    const { jobs, now, nextDueAt } = await claim(store);
    assert.equal(jobs.length, 1);
    assert.ok(now < soon.dueAt);
    assert.equal(nextDueAt, soon.dueAt);
    await advance(MINUTE);
    assert.equal((await claim(store)).nextDueAt, later.dueAt);
  },

  'a filled claim tells no next due time': async ({ store }) => {
    await store.enqueue([newJob(), newJob({ delayMs: MINUTE })]);
    assert.equal((await claim(store, { limit: 1 })).nextDueAt, null);
  },

  'the next due time counts retries and leaves out other queues, running and ended jobs': async ({ store }) => {
    assert.equal((await claim(store)).nextDueAt, null);
    await settleOne(store, await startOne(store), complete);
    await startOne(store);
    await enqueueOne(store, { queue: 'other', delayMs: MINUTE });
    await store.cancel([await enqueueOne(store, { delayMs: MINUTE })]);
    assert.equal((await claim(store)).nextDueAt, null);
    const job = await startOne(store);
    await settleOne(store, job, retryIn(HOUR));
    assert.equal((await claim(store)).nextDueAt, (await jobOf(store, job.id)).dueAt);
  },

  'the next due time lies ahead even while due jobs are held back': async ({ store }) => {
    await enqueueInLane(store, 'retry', 2);
    const later = await jobOf(store, await enqueueOne(store, { delayMs: HOUR }));
    const answer = await claim(store, { queues: [quota({ maxRetriesInFlight: 1 })] });
    assert.equal(answer.jobs.length, 1);
    assert.equal(answer.nextDueAt, later.dueAt);
  },
});

export const claimCases: readonly StoreCase[] = [...taking, ...ordering, ...sharing, ...lookingAhead];
