import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { expectSoundFile } from '../../../test/support/sound-file.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { claim, idsOf, newJob, quota, retryIn, settlement } from '../conformance/builders.ts';
import type { Claim, ClaimedJob, NewJob } from '../store.ts';
import { SqliteStore } from './store.ts';

async function withStore(test: (store: SqliteStore, path: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-'));
  const path = join(folder, 'jobs.db');
  const store = await SqliteStore.open({ path, inline: new VirtualClock() });
  try {
    await test(store, path);
  } finally {
    await store.close();
    rmSync(folder, { recursive: true });
  }
}

/** SQLite cannot store it, and says so only when the row is written: after its name and queue were. */
const unstorable = (changes: Partial<NewJob>): NewJob => newJob({ ...changes, key: [] as never });

describe('of calls that share a transaction', () => {
  it('one that fails takes back its own writes, and no others', () =>
    withStore(async (store) => {
      const [before, after] = [newJob(), newJob()];
      const half = newJob();
      const answers = await Promise.allSettled([
        store.enqueue([before]),
        store.enqueue([half, unstorable({})]),
        store.enqueue([newJob({ payload: '1\n2' })]),
        store.enqueue([after]),
      ]);
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
      expect(answers[1]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE' } });
      expect(answers[2]).toMatchObject({ reason: { code: 'CONFIG' } });
      expect(idsOf(await store.list({ limit: 10 })).toSorted()).toEqual([before.id, after.id].toSorted());
      expect((await store.stats()).rows).toMatchObject([{ totals: { enqueued: 2 } }]);
    }));

  it('a claim gets what an enqueue beside it brings', () =>
    withStore(async (store) => {
      const heard: Promise<Claim>[] = [];
      const job = newJob();
      // Told before it is committed, so that the claim can share the transaction.
      store.onWork(() => heard.push(claim(store)));
      const enqueued = store.enqueue([job]);
      expect(heard).toHaveLength(1);
      await enqueued;
      expect(idsOf((await heard[0])?.jobs ?? [])).toEqual([job.id]);
    }));

  it('a read that fails is an error to its caller only', () =>
    withStore(async (store) => {
      const job = newJob();
      const answers = await Promise.allSettled([
        store.enqueue([job]),
        store.get([(2n ** 70n) as never]),
        store.stats(),
      ]);
      expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      expect(answers[1]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE' } });
      expect(idsOf(await store.get([job.id]))).toEqual([job.id]);
    }));
});

describe('what a failed call had written is forgotten', () => {
  it('so that names and queues which come after it are their own', () =>
    withStore(async (store) => {
      await expect(store.enqueue([unstorable({ name: 'lost', queue: 'lost', resource: 'r' })])).rejects.toThrow();
      const given = [
        newJob({ name: 'other', queue: 'other', resource: 'o' }),
        newJob({ name: 'lost', queue: 'lost', resource: 'r' }),
      ];
      for (const job of given) await store.enqueue([job]);
      const read = await store.get(idsOf(given));
      expect(read.map(({ name, queue, resource }) => [name, queue, resource])).toEqual([
        ['other', 'other', 'o'],
        ['lost', 'lost', 'r'],
      ]);
      const request = { worker: 'w', leaseMs: 1_000, limit: 9, queues: [quota({ queue: 'lost' })] };
      expect((await store.claim(request)).jobs).toMatchObject([{ name: 'lost', queue: 'lost', resource: 'r' }]);
    }));

  it('so that its errors are counted once, by the call that is sent again', () =>
    withStore(async (store, path) => {
      await store.enqueue([newJob()]);
      const [job] = (await claim(store)).jobs as [ClaimedJob];
      const error = { name: 'Error', message: 'away', code: null, status: null, stack: '' };
      const failed = { ...settlement(job, retryIn(5)), outcome: 'failed' as const, error };
      await expect(store.settle([{ ...failed, startedAt: [] as never }])).rejects.toThrow();
      expect(await store.settle([failed])).toEqual(['settled']);
      expect(await store.runs(job.id)).toMatchObject([{ error }]);
      expectSoundFile(path);
    }));
});
