import assert from 'node:assert/strict';
import type { Decision } from '../../retry/decision.ts';
import {
  assertUntouched,
  cancelNow,
  claim,
  claimOne,
  complete,
  crash,
  die,
  discard,
  enqueueOne,
  fenceOf,
  giveBack,
  HOUR,
  jobOf,
  LEASE,
  newJobs,
  only,
  retryIn,
  settlement,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const everyDecision: readonly Decision[] = [
  complete,
  cancelNow,
  die(),
  retryIn(0),
  retryIn(HOUR),
  giveBack('snooze', HOUR),
  giveBack('release'),
  giveBack('defer', HOUR),
];

const fenced: StoreCase[] = cases('settle', {
  'a settlement of another run or worker is stale and changes nothing': async ({ store }) => {
    const job = await startOne(store);
    await assertUntouched(store, job.id, async () => {
      const late = [{ worker: 'worker-2' }, { run: job.run + 1 }, { run: job.run - 1 }];
      const answers = await store.settle(late.map((changes) => settlement(job, complete, changes)));
      assert.deepEqual(answers, ['stale', 'stale', 'stale']);
    });
  },

  'a settlement of a job that waits, or never was, is stale': async ({ store }) => {
    const job = await startOne(store);
    const waiting = await enqueueOne(store);
    await assertUntouched(store, waiting, async () => {
      const answers = await store.settle([waiting, 'unknown'].map((id) => settlement(job, complete, { id })));
      assert.deepEqual(answers, ['stale', 'stale']);
      const unstarted = settlement(job, complete, { id: waiting, run: 0 });
      assert.deepEqual(await store.settle([unstarted]), ['stale']);
    });
  },

  'a settlement of the run before the present one is stale': async ({ store, advance }) => {
    const first = await startOne(store);
    await advance(2 * LEASE);
    await store.settle([crash(first)]);
    const second = await claimOne(store, { worker: first.worker });
    await assertUntouched(store, first.id, async () => {
      assert.deepEqual(await store.settle([settlement(first, complete)]), ['stale']);
    });
    await settleOne(store, second, complete);
  },

  'one stale row of a batch does not stop the others': async ({ store }) => {
    await store.enqueue(newJobs(3));
    const [a, b, c] = (await claim(store)).jobs;
    assert.ok(a && b && c);
    const answers = await store.settle([
      settlement(a, complete),
      settlement(b, complete, { worker: 'worker-2' }),
      settlement(c, retryIn(HOUR)),
    ]);
    assert.deepEqual(answers, ['settled', 'stale', 'settled']);
    const states = (await store.get([a.id, b.id, c.id])).map((job) => job.state);
    assert.deepEqual(states, ['completed', 'running', 'retrying']);
    assert.deepEqual(await store.settle([]), []);
  },

  'a late settlement lands while nobody has rescued the run': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(2 * LEASE);
    await settleOne(store, job, complete);
    assert.equal((await jobOf(store, job.id)).state, 'completed');
    assert.deepEqual(await store.expired(10), []);
  },
});

const replayed: StoreCase[] = cases('settle', {
  'a repeated settlement is answered settled and changes nothing': async ({ store, advance }) => {
    for (const decision of everyDecision) {
      const job = await startOne(store);
      const sent = settlement(job, decision);
      assert.deepEqual(await store.settle([sent]), ['settled']);
      await assertUntouched(store, job.id, async () => {
        assert.deepEqual(await store.settle([sent, sent]), ['settled', 'settled'], decision.kind);
      });
      await store.cancel([job.id]);
      await advance(1);
    }
  },

  'a settlement is settled even when it is repeated runs later': async ({ store }) => {
    const first = await startOne(store);
    await settleOne(store, first, retryIn(0));
    const second = await claimOne(store);
    await assertUntouched(store, first.id, () => settleOne(store, first, retryIn(0)));
    await settleOne(store, second, complete);
    await assertUntouched(store, first.id, () => settleOne(store, first, retryIn(0)));
  },

  'a second outcome for a settled run is stale': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, complete);
    await assertUntouched(store, job.id, async () => {
      const answers = await store.settle([settlement(job, retryIn(0)), settlement(job, complete, { worker: 'other' })]);
      assert.deepEqual(answers, ['stale', 'stale']);
    });
  },

  'a run that never started is not settled because another one ended the same way': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, retryIn(0));
    await assertUntouched(store, job.id, async () => {
      assert.deepEqual(await store.settle([settlement(job, retryIn(0), { run: 2 })]), ['stale']);
    });
  },

  'the same settlement twice in one batch is written once': async ({ store }) => {
    const job = await startOne(store);
    const sent = settlement(job, retryIn(HOUR));
    assert.deepEqual(await store.settle([sent, sent]), ['settled', 'settled']);
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { runs: 1, attempts: 1 });
    assert.equal((await store.runs(job.id)).length, 1);
    assert.equal(only((await store.stats()).rows).totals.runs.failed, 1);
  },

  'the same settlement from many callers at once is written once': async ({ store }) => {
    const job = await startOne(store);
    const sent = settlement(job, giveBack('release', HOUR));
    const answers = await Promise.all(Array.from({ length: 10 }, () => store.settle([sent])));
    assert.ok(answers.flat().every((answer) => answer === 'settled'));
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { runs: 1, attempts: 0 });
    assert.equal((await store.runs(job.id)).length, 1);
  },

  'a repeated settlement of a job that is gone is stale': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, die());
    await discard(store, { ids: [job.id] });
    assert.deepEqual(await store.settle([settlement(job, die())]), ['stale']);
    assert.deepEqual(await store.get([job.id]), []);
  },
});

const crashed: StoreCase[] = cases('settle', {
  'a crash is not believed while the lease lives': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(LEASE / 2);
    await assertUntouched(store, job.id, async () => {
      assert.deepEqual(await store.settle([crash(job)]), ['stale']);
    });
    await settleOne(store, job, complete);
  },

  'a crash lands from the end of the lease on, and is counted': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(LEASE);
    assert.deepEqual(await store.settle([crash(job, retryIn(HOUR))]), ['settled']);
    const waiting = await jobOf(store, job.id);
    assert.partialDeepStrictEqual(waiting, { state: 'retrying', runs: 1, attempts: 1, crashes: 1, worker: null });
  },

  'a crash is not believed when the worker came back in time': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(2 * LEASE);
    const found = only(await store.expired(10));
    await store.heartbeat([{ ...fenceOf(job), leaseMs: LEASE }]);
    assert.deepEqual(await store.settle([crash(found)]), ['stale']);
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { state: 'running', crashes: 0 });
  },

  'a crash repeated is stale, and so is the late worker': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(2 * LEASE);
    await store.settle([crash(job)]);
    await assertUntouched(store, job.id, async () => {
      assert.deepEqual(await store.settle([crash(job), settlement(job, complete)]), ['stale', 'stale']);
    });
  },

  'a crash may bury the job': async ({ store, advance }) => {
    const job = await startOne(store);
    await advance(2 * LEASE);
    await store.settle([crash(job, die('poison'))]);
    assert.partialDeepStrictEqual(await jobOf(store, job.id), { state: 'dead', deadReason: 'poison', crashes: 1 });
  },

  'when worker and rescuer settle at once exactly one is heard': async ({ store, advance }) => {
    await store.enqueue(newJobs(10));
    const { jobs } = await claim(store);
    await advance(2 * LEASE);
    for (const job of jobs) {
      const both = [settlement(job, complete), crash(job)];
      const answers = await Promise.all(both.map((sent) => store.settle([sent])));
      assert.deepEqual(answers.flat().toSorted(), ['settled', 'stale']);
      assert.equal((await store.runs(job.id)).length, 1);
    }
  },
});

export const fenceCases: readonly StoreCase[] = [...fenced, ...replayed, ...crashed];
