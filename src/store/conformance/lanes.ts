import assert from 'node:assert/strict';
import {
  claim,
  claimOne,
  complete,
  countLanes,
  crash,
  enqueueInLane,
  enqueueOne,
  fenceOf,
  giveBack,
  HOUR,
  idsOf,
  jobOf,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  only,
  quota,
  retryIn,
  settlement,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const shares: StoreCase[] = cases('lanes', {
  'while fresh work waits retries take only the places kept for them': async ({ store }) => {
    await enqueueInLane(store, 'retry', 10);
    await store.enqueue(newJobs(10));
    const { jobs } = await claim(store, { limit: 5, queues: [quota({ retry: 1 })] });
    assert.deepEqual(countLanes(jobs), { retry: 1, fresh: 4 });
  },

  'with no places kept retries wait until no fresh work is left': async ({ store }) => {
    await enqueueInLane(store, 'retry', 3);
    await store.enqueue(newJobs(3));
    assert.deepEqual(countLanes((await claim(store, { limit: 2 })).jobs), { fresh: 2 });
    assert.deepEqual(countLanes((await claim(store, { limit: 10 })).jobs), { fresh: 1, retry: 3 });
  },

  'fresh work takes what the other lanes leave of their places': async ({ store }) => {
    await enqueueInLane(store, 'retry', 1);
    await store.enqueue(newJobs(10));
    const { jobs } = await claim(store, { limit: 5, queues: [quota({ retry: 2, redrive: 2 })] });
    assert.deepEqual(countLanes(jobs), { retry: 1, fresh: 4 });
  },

  'a claim of one place kept for a retry takes the retry': async ({ store }) => {
    const ids = await enqueueInLane(store, 'retry', 1);
    await store.enqueue(newJobs(3, { priority: 0 }));
    assert.deepEqual([(await claimOne(store, { queues: [quota({ retry: 1 })] })).id], ids);
  },

  'redrives have places of their own': async ({ store }) => {
    await enqueueInLane(store, 'retry', 5);
    await enqueueInLane(store, 'redrive', 5, 'other');
    await enqueueInLane(store, 'redrive', 5);
    await store.enqueue(newJobs(10));
    const { jobs } = await claim(store, { limit: 10, queues: [quota({ retry: 2, redrive: 1 })] });
    assert.deepEqual(countLanes(jobs), { retry: 2, redrive: 1, fresh: 7 });
  },

  'retries and redrives lend each other the places they leave': async ({ store }) => {
    await enqueueInLane(store, 'redrive', 5);
    await store.enqueue(newJobs(10));
    const first = await claim(store, { limit: 6, queues: [quota({ retry: 2, redrive: 1 })] });
    assert.deepEqual(countLanes(first.jobs), { redrive: 3, fresh: 3 });
  },

  'kept places are kept per queue': async ({ store }) => {
    for (const queue of ['a', 'b']) {
      await enqueueInLane(store, 'retry', 5, queue);
      await store.enqueue(newJobs(5, { queue }));
    }
    const queues = [quota({ queue: 'a', share: 3, retry: 1 }), quota({ queue: 'b', share: 3, retry: 2 })];
    const { jobs } = await claim(store, { limit: 6, queues });
    assert.deepEqual(countLanes(jobs.filter((job) => job.queue === 'a')), { retry: 1, fresh: 2 });
    assert.deepEqual(countLanes(jobs.filter((job) => job.queue === 'b')), { retry: 2, fresh: 1 });
  },
});

const suspects: StoreCase[] = cases('lanes', {
  'a suspect is claimed only in a place for suspects': async ({ store }) => {
    const ids = await enqueueInLane(store, 'suspect', 1);
    const without = await claim(store);
    assert.deepEqual(without.jobs, []);
    assert.equal(without.suspectsWait, true);
    const withPlace = await claim(store, { queues: [quota({ suspect: 1 })] });
    assert.deepEqual(idsOf(withPlace.jobs), ids);
    assert.equal(only(withPlace.jobs).lane, 'suspect');
    assert.equal(withPlace.suspectsWait, false);
  },

  'a due suspect that found no place is not what falls due next': async ({ store, advance }) => {
    await settleOne(store, await startOne(store), retryIn(MINUTE, 'suspect'));
    await advance(HOUR);
    const { jobs, nextDueAt, suspectsWait } = await claim(store);
    assert.deepEqual([jobs, nextDueAt, suspectsWait], [[], null, true]);
  },

  'a claim for suspects takes nothing else': async ({ store }) => {
    const queues = ['default', 'other'].map((queue) => quota({ queue, share: 1, retry: 1, suspect: 1 }));
    for (const { queue } of queues) {
      await store.enqueue(newJobs(5, { queue, priority: 0 }));
      await enqueueInLane(store, 'retry', 2, queue);
    }
    assert.deepEqual((await claim(store, { limit: 5, queues })).jobs, []);
    const ids = await enqueueInLane(store, 'suspect', 1, 'other');
    assert.deepEqual(idsOf((await claim(store, { limit: 5, queues })).jobs), ids);
    // And has seen nothing of the rest: it is still there for the next one.
    const others = await claim(store, { limit: 20, queues: ['default', 'other'].map((queue) => quota({ queue })) });
    assert.deepEqual(countLanes(others.jobs), { fresh: 10, retry: 4 });
  },

  'no more suspects are claimed than there are places for them': async ({ store }) => {
    await enqueueInLane(store, 'suspect', 3);
    const { jobs } = await claim(store, { queues: [quota({ suspect: 1 })] });
    assert.deepEqual(countLanes(jobs), { suspect: 1 });
  },

  'no suspect is claimed while another one of its queue runs, in whichever worker': async ({ store }) => {
    await enqueueInLane(store, 'suspect', 2);
    await enqueueInLane(store, 'suspect', 1, 'other');
    const trial = { queues: [quota({ suspect: 1 })] };
    const first = await claim(store, { worker: 'a', ...trial });
    assert.deepEqual([countLanes(first.jobs), first.suspectsWait], [{ suspect: 1 }, false]);
    const second = await claim(store, { worker: 'b', ...trial });
    assert.deepEqual([second.jobs, second.suspectsWait], [[], false]);
    const other = await claim(store, { worker: 'b', queues: [quota({ queue: 'other', suspect: 1 })] });
    assert.deepEqual(countLanes(other.jobs), { suspect: 1 });
    await settleOne(store, only(first.jobs), complete);
    assert.equal((await claim(store)).suspectsWait, true);
    assert.deepEqual(countLanes((await claim(store, trial)).jobs), { suspect: 1 });
  },

  'without a cap retries start beside a suspect that runs or waits': async ({ store }) => {
    await enqueueInLane(store, 'suspect', 2);
    await enqueueInLane(store, 'retry', 2);
    assert.deepEqual(countLanes((await claim(store, { limit: 1 })).jobs), { retry: 1 });
    await claimOne(store, { queues: [quota({ suspect: 1 })] });
    assert.deepEqual(countLanes((await claim(store)).jobs), { retry: 1 });
  },

  'of many claims for suspects at once only one gets a suspect': async ({ store }) => {
    await enqueueInLane(store, 'suspect', 8);
    const workers = Array.from({ length: 8 }, (_, index) => `worker-${index}`);
    const claims = await Promise.all(
      workers.map((worker) => claim(store, { worker, queues: [quota({ suspect: 1 })] })),
    );
    assert.equal(claims.flatMap(({ jobs }) => jobs).length, 1);
  },

  'a suspect whose lease ran out counts as running until it is rescued': async ({ store, advance }) => {
    await enqueueInLane(store, 'suspect', 2);
    const trial = { queues: [quota({ suspect: 1 })] };
    const lost = await claimOne(store, trial);
    await advance(2 * LEASE);
    assert.deepEqual((await claim(store, trial)).jobs, []);
    await store.settle([crash(lost, retryIn(HOUR, 'suspect'))]);
    assert.equal((await claim(store, trial)).jobs.length, 1);
  },

  'what a heartbeat says of running alone comes back with the expired run, and ends with it': async ({
    store,
    advance,
  }) => {
    await enqueueInLane(store, 'suspect', 1);
    const trial = { queues: [quota({ suspect: 1 })] };
    const job = await claimOne(store, trial);
    assert.equal(job.alone, false);
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE, alone: true }]);
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE }]);
    await advance(2 * LEASE);
    assert.equal(only(await store.expired(10)).alone, true);
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE, alone: false }]);
    await advance(2 * LEASE);
    assert.equal(only(await store.expired(10)).alone, false);
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE, alone: true }]);
    await settleOne(store, job, retryIn(0, 'suspect'));
    assert.equal((await claimOne(store, trial)).alone, false);
  },

  'a suspect that is not due, or waits elsewhere, is not announced': async ({ store }) => {
    await enqueueInLane(store, 'suspect', 1, 'elsewhere');
    await settleOne(store, await startOne(store), retryIn(HOUR, 'suspect'));
    const answer = await claim(store, { queues: [quota({ suspect: 1 })] });
    assert.deepEqual(answer.jobs, []);
    assert.equal(answer.suspectsWait, false);
  },
});

const cap: StoreCase[] = cases('lanes', {
  'no more retries run at once than the cap allows, over all workers': async ({ store }) => {
    await enqueueInLane(store, 'retry', 10);
    const queues = [quota({ retry: 10, maxRetriesInFlight: 3 })];
    const first = await claim(store, { worker: 'a', limit: 2, queues });
    const second = await claim(store, { worker: 'b', limit: 10, queues });
    assert.deepEqual([first.jobs.length, second.jobs.length], [2, 1]);
    assert.deepEqual((await claim(store, { queues })).jobs, []);
    await settleOne(store, only(second.jobs), retryIn(HOUR));
    assert.equal((await claim(store, { queues })).jobs.length, 1);
  },

  'a cap that no queue can reach caps nothing': async ({ store }) => {
    await enqueueInLane(store, 'retry', 4);
    for (const maxRetriesInFlight of [2 ** 31, Number.MAX_SAFE_INTEGER]) {
      const queues = [quota({ retry: 2, maxRetriesInFlight })];
      assert.equal((await claim(store, { limit: 2, queues })).jobs.length, 2);
    }
  },

  'the cap holds within a claim, however its places are shared out': async ({ store }) => {
    await enqueueInLane(store, 'retry', 5);
    await store.enqueue(newJobs(2));
    const { jobs } = await claim(store, { queues: [quota({ share: 3, retry: 1, maxRetriesInFlight: 3 })] });
    assert.deepEqual(countLanes(jobs), { fresh: 2, retry: 3 });
  },

  'the cap holds when many workers claim at once': async ({ store }) => {
    await enqueueInLane(store, 'retry', 20);
    const queues = [quota({ retry: 5, maxRetriesInFlight: 4 })];
    const workers = Array.from({ length: 8 }, (_, index) => `worker-${index}`);
    const claims = await Promise.all(workers.map((worker) => claim(store, { worker, limit: 3, queues })));
    assert.equal(claims.flatMap(({ jobs }) => jobs).length, 4);
  },

  'the cap counts retries and suspects together, and nothing else': async ({ store }) => {
    await enqueueInLane(store, 'suspect', 2);
    await enqueueInLane(store, 'retry', 2);
    await enqueueInLane(store, 'redrive', 2);
    await store.enqueue(newJobs(2));
    const capped = quota({ retry: 5, redrive: 5, maxRetriesInFlight: 2 });
    const trial = await claim(store, { queues: [{ ...capped, suspect: 1 }] });
    assert.deepEqual(countLanes(trial.jobs), { suspect: 1 });
    const { jobs } = await claim(store, { queues: [capped] });
    assert.deepEqual(countLanes(jobs), { retry: 1, redrive: 2, fresh: 2 });
    for (const suspect of [0, 1]) {
      const again = await claim(store, { queues: [{ ...capped, suspect }] });
      assert.deepEqual([again.jobs, again.suspectsWait], [[], false]);
    }
  },

  'while a suspect is due one place under the cap is kept for it': async ({ store }) => {
    await enqueueInLane(store, 'suspect', 1);
    await enqueueInLane(store, 'retry', 5);
    const capped = quota({ retry: 5, maxRetriesInFlight: 2 });
    const retries = await claim(store, { queues: [capped] });
    assert.deepEqual([countLanes(retries.jobs), retries.suspectsWait], [{ retry: 1 }, true]);
    const trial = await claim(store, { queues: [{ ...capped, suspect: 1 }] });
    assert.deepEqual(countLanes(trial.jobs), { suspect: 1 });
    await settleOne(store, only(trial.jobs), complete);
    assert.deepEqual(countLanes((await claim(store, { queues: [capped] })).jobs), { retry: 1 });
  },

  'a suspect that the cap holds back is announced once a retry ends': async ({ store }) => {
    await enqueueInLane(store, 'retry', 2);
    const capped = quota({ retry: 5, maxRetriesInFlight: 1 });
    const running = await claimOne(store, { queues: [capped] });
    await settleOne(store, await startOne(store), retryIn(0, 'suspect'));
    const full = await claim(store, { queues: [capped] });
    assert.deepEqual([full.jobs, full.suspectsWait], [[], false]);
    await settleOne(store, running, complete);
    const free = await claim(store, { queues: [capped] });
    assert.deepEqual([free.jobs, free.suspectsWait], [[], true]);
  },

  'the cap is per queue, and zero lets no retry through': async ({ store }) => {
    await enqueueInLane(store, 'retry', 3, 'a');
    await enqueueInLane(store, 'retry', 3, 'b');
    const queues = [quota({ queue: 'a', maxRetriesInFlight: 0 }), quota({ queue: 'b', maxRetriesInFlight: 2 })];
    const { jobs } = await claim(store, { queues });
    assert.deepEqual(
      jobs.map((job) => job.queue),
      ['b', 'b'],
    );
  },

  'a retry counts in the retry queue it runs from': async ({ store }) => {
    for (let made = 0; made < 2; made++) {
      await settleOne(store, await startOne(store, { queue: 'mail', retryQueue: 'mail.retry' }), retryIn(0));
    }
    await enqueueInLane(store, 'retry', 1, 'mail');
    const queues = ['mail', 'mail.retry'].map((queue) => quota({ queue, maxRetriesInFlight: 1 }));
    const { jobs } = await claim(store, { queues });
    assert.deepEqual(
      jobs.map((job) => job.queue),
      ['mail', 'mail.retry'],
    );
    assert.deepEqual((await claim(store, { queues })).jobs, []);
  },

  'a retry whose lease ran out counts until it is rescued': async ({ store, advance }) => {
    await enqueueInLane(store, 'retry', 2);
    const queues = [quota({ maxRetriesInFlight: 1 })];
    const lost = await claimOne(store, { queues });
    await advance(2 * LEASE);
    assert.deepEqual((await claim(store, { queues })).jobs, []);
    await store.settle([crash(lost, retryIn(HOUR))]);
    assert.equal((await claim(store, { queues })).jobs.length, 1);
  },
});

const staying: StoreCase[] = cases('lanes', {
  'a job that was given back waits in the lane it was claimed from': async ({ store }) => {
    await enqueueInLane(store, 'retry', 1);
    await enqueueInLane(store, 'redrive', 1, 'b');
    await enqueueInLane(store, 'suspect', 1, 'c');
    await enqueueOne(store, { queue: 'd' });
    const queues = ['default', 'b', 'c', 'd'].map((queue) => quota({ queue, suspect: queue === 'c' ? 1 : 0 }));
    const claimed = (await claim(store, { queues })).jobs;
    assert.deepEqual(countLanes(claimed), { retry: 1, redrive: 1, suspect: 1, fresh: 1 });
    await store.settle(claimed.map((job) => settlement(job, giveBack('release'))));
    for (const job of claimed) assert.equal((await jobOf(store, job.id)).lane, job.lane);
    assert.deepEqual(countLanes((await claim(store, { queues })).jobs), countLanes(claimed));
  },

  'a retried job keeps its priority': async ({ store }) => {
    const jobs = [newJob({ priority: 7 }), newJob({ priority: 2 })];
    await store.enqueue(jobs);
    const claimed = (await claim(store)).jobs;
    await store.settle(claimed.map((job) => settlement(job, retryIn(0))));
    assert.deepEqual(
      (await claim(store)).jobs.map((job) => job.priority),
      [2, 7],
    );
  },
});

export const laneCases: readonly StoreCase[] = [...shares, ...suspects, ...cap, ...staying];
