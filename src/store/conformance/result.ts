import assert from 'node:assert/strict';
import { encodeResult } from '../../result.ts';
import type { Settlement, Store } from '../store.ts';
import { claimOne, complete, die, giveBack, only, retryIn, settlement, settleOne, startOne } from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const textOf = (value: unknown, maxBytes = 1_000): string => encodeResult(value, maxBytes)?.text as string;

async function jobOf(store: Store, id: string) {
  return only(await store.get([id]));
}

export const resultCases: readonly StoreCase[] = cases('settle', {
  async 'the result of a completed run is kept with the job'({ store }) {
    const results = [{ url: 'a/b', n: [1, null, "it's"] }, 'line\nbreak "quoted" \\', 0, false, null, []];
    for (const result of results) {
      const job = await startOne(store);
      await settleOne(store, job, complete, { result: textOf(result) });
      const kept = await jobOf(store, job.id);
      assert.deepEqual([kept.result, kept.resultError], [result, null]);
    }
  },

  async 'a run without a result leaves none'({ store }) {
    const job = await startOne(store);
    await settleOne(store, job, complete);
    const { result, resultError } = await jobOf(store, job.id);
    assert.deepEqual([result, resultError], [null, null]);
  },

  async 'a batch keeps each result with its own job'({ store }) {
    const jobs = [await startOne(store), await startOne(store), await startOne(store), await startOne(store)];
    const settlements = jobs.map((job, index): Settlement => {
      const more = index % 2 === 0 ? { result: textOf({ index }) } : {};
      return settlement(job, complete, more);
    });
    assert.deepEqual(await store.settle(settlements), ['settled', 'settled', 'settled', 'settled']);
    const kept = await store.get(jobs.map(({ id }) => id));
    assert.deepEqual(
      kept.map(({ result }) => result),
      [{ index: 0 }, null, { index: 2 }, null],
    );
  },

  async 'a result that could not be stored says why'({ store }) {
    const job = await startOne(store);
    await settleOne(store, job, complete, { result: textOf('x'.repeat(100), 10) });
    const { state, result, resultError } = await jobOf(store, job.id);
    assert.deepEqual([state, result], ['completed', null]);
    assert.match(String(resultError), /expected at most 10 bytes of JSON, got 102/);
  },

  async 'a repeated settlement keeps the first result'({ store }) {
    const job = await startOne(store);
    await settleOne(store, job, complete, { result: textOf(1) });
    await settleOne(store, job, complete, { result: textOf(2) });
    assert.equal((await jobOf(store, job.id)).result, 1);
  },

  async 'a completion that gives attempts back keeps its result too'({ store }) {
    const job = await startOne(store);
    await settleOne(store, job, complete, { result: textOf('x'), refund: { attempts: 1, spent: null } });
    assert.equal((await jobOf(store, job.id)).result, 'x');
  },

  async 'progress that no heartbeat has stored arrives with every outcome'({ store }) {
    for (const decision of [
      complete,
      retryIn(60_000),
      die(),
      giveBack('snooze', 60_000),
      giveBack('release', 60_000),
    ]) {
      const job = await startOne(store);
      await settleOne(store, job, decision, { progress: '{"done":7}' });
      assert.deepEqual((await jobOf(store, job.id)).progress, { done: 7 }, decision.kind);
    }
  },

  async 'a settlement without progress leaves what a heartbeat stored'({ store }) {
    const job = await startOne(store);
    await store.heartbeat([{ id: job.id, run: job.run, worker: job.worker, leaseMs: 60_000, progress: '5' }]);
    await settleOne(store, job, retryIn(0));
    assert.equal((await jobOf(store, job.id)).progress, 5);
    await settleOne(store, await claimOne(store), complete);
    assert.equal((await jobOf(store, job.id)).progress, 5);
  },

  async 'a stale settlement stores neither result nor progress'({ store }) {
    const job = await startOne(store);
    await settleOne(store, job, retryIn(0));
    const stale = settlement(job, complete, { result: textOf(1), progress: '1' });
    assert.deepEqual(await store.settle([stale]), ['stale']);
    const { result, progress } = await jobOf(store, job.id);
    assert.deepEqual([result, progress], [null, null]);
  },
});
