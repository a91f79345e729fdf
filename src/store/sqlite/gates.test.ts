import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { type OpenedFile, withStore } from '../../../test/support/sqlite-file.ts';
import {
  claim,
  idsOf,
  MINUTE,
  newJob,
  newJobs,
  only,
  pruneWith,
  retryIn,
  settlement,
} from '../conformance/builders.ts';
import {
  claimGated,
  enqueueBehind,
  gateOf,
  refused,
  report,
  runsOf,
  spendBudget,
  trip,
} from '../conformance/gate-builders.ts';
import { SqliteStore } from './store.ts';

/** While another process holds the write lock. */
async function whileLocked(path: string, test: () => Promise<void>): Promise<void> {
  using db = new DatabaseSync(path);
  db.exec('BEGIN IMMEDIATE');
  try {
    await test();
  } finally {
    db.exec('ROLLBACK');
  }
}

describe('a claim while another process holds the write lock', () => {
  it('names the resources of gated jobs', () =>
    withStore(async ({ store, path, clock }) => {
      await store.enqueue([newJob({ resource: 'smtp' })]);
      await trip(store, 'smtp');
      await clock.advance(MINUTE);
      await whileLocked(path, async () => {
        const { jobs, gated } = await claim(store);
        expect([jobs, gated]).toEqual([[], ['smtp']]);
      });
    }));

  it('is told when a gate may be asked that admits nothing yet', () =>
    withStore(async ({ store, path }) => {
      await store.enqueue([newJob({ resource: 'smtp' })]);
      await trip(store, 'smtp');
      const { nextDueAt } = await claim(store);
      await whileLocked(path, async () => {
        const { jobs, nextAt, now } = await claimGated(store, 'smtp');
        expect(jobs).toEqual([]);
        // Columns hold whole milliseconds.
        expect(Math.ceil(nextAt ?? now)).toBe(nextDueAt);
      });
    }));
});

describe('what a file keeps', () => {
  it('a gate, what waits behind it and what a job has spent are there after it was opened again', () =>
    withStore(async ({ store, path, clock }) => {
      const [spent, waiting] = newJobs(2, { resource: 'smtp' }) as [
        ReturnType<typeof newJob>,
        ReturnType<typeof newJob>,
      ];
      await store.enqueue([spent]);
      const job = only((await claim(store)).jobs);
      const decision = { kind: 'retry', why: 'backoff', delayMs: 0, lane: 'retry', rule: 'default' } as const;
      const note = { at: clock.now(), count: 2 };
      await store.settle([{ ...settlement(job, decision), refund: { attempts: 0, spent: note } }]);
      await store.enqueue([waiting]);
      const { state } = await trip(store, 'smtp');
      const again = await SqliteStore.open({ path, inline: clock });
      expect((await claim(again)).jobs).toEqual([]);
      expect(only(await again.gates({ limit: 9 }))).toMatchObject({ state: { epoch: state.epoch }, waiting: 2 });
      await again.changeGate(gateOf('smtp'), 'close', 'me');
      const claimed = (await claim(again, { limit: 2 })).jobs;
      expect(claimed.find(({ id }) => id === spent.id)?.spent).toEqual(note);
      expect(claimed.find(({ id }) => id === waiting.id)?.spent).toBeNull();
      await again.close();
    }));

  it('a gate whose row cannot be read holds nothing back once it is asked', () =>
    withStore(async ({ store, path, clock }) => {
      const ids = await enqueueBehind(store, 'smtp', 'fresh', 3);
      await trip(store, 'smtp');
      using db = new DatabaseSync(path);
      db.exec("UPDATE gates SET state = '{'");
      await clock.advance(MINUTE);
      const again = await SqliteStore.open({ path, inline: clock });
      expect((await claim(again)).gated).toEqual(['smtp']);
      expect(idsOf((await claimGated(again, 'smtp', { limit: 2 })).jobs)).toEqual(ids.slice(0, 2));
      expect(idsOf((await claim(again)).jobs)).toEqual(ids.slice(2));
      await again.close();
    }));
});

describe('the times of a gated partition', () => {
  it('follow a job that is due before those which wait in it', () =>
    withStore(async ({ store, clock }) => {
      await store.enqueue([newJob({ resource: 'smtp', delayMs: 60 * MINUTE })]);
      await trip(store, 'smtp');
      await clock.advance(MINUTE);
      expect(await claim(store)).toMatchObject({ gated: [], nextDueAt: clock.now() + 59 * MINUTE });
      await store.enqueue([newJob({ resource: 'smtp' })]);
      expect(await claim(store)).toMatchObject({ gated: ['smtp'], nextDueAt: null });
    }));

  it('follow a hold of its queue', () =>
    withStore(async ({ store, clock }) => {
      await store.enqueue([newJob({ resource: 'smtp' })]);
      await trip(store, 'smtp');
      await clock.advance(MINUTE);
      const until = clock.now() + MINUTE;
      await store.hold({ queue: 'default' }, until);
      expect(await claim(store)).toMatchObject({ gated: [], nextDueAt: until });
      expect((await claimGated(store, 'smtp')).jobs).toEqual([]);
      await store.release({ queue: 'default' });
      expect(await claim(store)).toMatchObject({ gated: ['smtp'], nextDueAt: null });
    }));
});

describe('the turns of gated partitions', () => {
  it('let each name of a resource retry, however many retries of another wait', () =>
    withStore(async ({ store, clock }) => {
      for (const name of ['busy', 'busy', 'quiet']) await store.enqueue([newJob({ resource: 'smtp', name })]);
      const jobs = (await claim(store, { limit: 3 })).jobs;
      await store.settle(jobs.map((job) => settlement(job, retryIn(0))));
      await spendBudget(store, 'smtp');
      // Long enough for a few retries, and too short for the budget not to be low any more.
      await clock.advance(13_000);
      const names: string[] = [];
      for (let claims = 0; claims < 2; claims++) {
        names.push(only((await claimGated(store, 'smtp', { limit: 1 })).jobs).name);
      }
      expect(names.toSorted()).toEqual(['busy', 'quiet']);
    }));
});

describe('forgetting gates', () => {
  it('reaches those behind more gates than one call looks at', () =>
    withStore(async ({ store, clock }) => {
      const kept = Array.from({ length: 1_200 }, (_, index) => gateOf(`kept/${index}`));
      await Promise.all(kept.map((gate) => store.changeGate(gate, 'open', 'me')));
      await report(store, gateOf('quiet'), await runsOf(store, 1, refused));
      await clock.advance(60 * MINUTE);
      const retention = { completedMs: null, deadMs: null, cancelledMs: null };
      for (let calls = 0; calls < 2; calls++) await pruneWith(store, retention, 100);
      const left = await store.gates({ limit: 2_000 });
      expect(left).toHaveLength(kept.length);
      expect(await store.gates({ name: 'quiet', limit: 1 })).toEqual([]);
    }));
});

describe('names of resources with a key', () => {
  const retention = { completedMs: null, deadMs: null, cancelledMs: 0 };
  const stored = (path: string): unknown[] => {
    using db = new DatabaseSync(path);
    return db.prepare("SELECT text FROM strings WHERE text LIKE 'hook/%' ORDER BY id").all();
  };
  /** Time passes meanwhile: of two processes that write, each leaves the other a gap. */
  const pruneAll = async ({ store, clock }: OpenedFile): Promise<void> => {
    for (let isDone = false; !isDone; ) {
      const [answer] = await Promise.all([pruneWith(store, retention, 500), clock.advance(MINUTE)]);
      isDone = answer.isDone;
    }
  };

  it('go with the last job, however many there were, and come back under another number', () =>
    withStore(async (opened) => {
      const { store, path, clock } = opened;
      const other = await SqliteStore.open({ path, inline: clock });
      const kept = newJob({ resource: 'hook/kept' });
      const flood = Array.from({ length: 2_500 }, (_, index) => newJob({ resource: `hook/${index}` }));
      await other.enqueue([...flood, kept]);
      const second = newJob({ resource: 'hook/7' });
      await other.enqueue([second, newJob({ queue: 'another' })]);
      await store.cancel(idsOf([...flood, second]));
      // The first time it may have looked at a name before the last job of that went.
      for (let times = 0; times < 2; times++) await pruneAll(opened);
      expect(stored(path)).toEqual([{ text: 'hook/kept' }]);
      const again = newJob({ resource: 'hook/7' });
      await Promise.all([other.enqueue([again]), clock.advance(MINUTE)]);
      expect(await store.get([again.id, kept.id])).toMatchObject([{ resource: 'hook/7' }, { resource: 'hook/kept' }]);
      await other.close();
    }));

  it('stay while a gate, a hold or a queue has them', () =>
    withStore(async (opened) => {
      const { store, path } = opened;
      const flood = ['gate', 'hold', 'queue', 'none', 'last'].map((key) => newJob({ resource: `hook/${key}` }));
      await store.enqueue(flood);
      await store.changeGate(gateOf('hook/gate'), 'open', 'me');
      await store.hold({ resource: 'hook/hold' }, null);
      // With a name that comes after all of theirs: the last one stays.
      await store.enqueue([newJob({ queue: 'hook/queue', name: 'after' })]);
      await store.cancel(idsOf(flood));
      await pruneAll(opened);
      const texts = ['hook/gate', 'hook/hold', 'hook/queue'].map((text) => ({ text }));
      expect(stored(path)).toEqual(texts);
    }));
});

describe('two processes on one file', () => {
  it('both leave the jobs behind a gate alone that one of them has opened, and both ask it', () =>
    withStore(async ({ store, path, clock }) => {
      const other = await SqliteStore.open({ path, inline: clock });
      await claim(other);
      await enqueueBehind(store, 'smtp', 'fresh', 2);
      await trip(store, 'smtp');
      await other.enqueue([newJob({ resource: 'smtp', priority: 1 })]);
      await clock.advance(MINUTE);
      expect(await claim(other)).toMatchObject({ jobs: [], gated: ['smtp'] });
      expect((await claimGated(other, 'smtp')).jobs).toHaveLength(1);
      expect((await claimGated(store, 'smtp')).jobs).toEqual([]);
      await other.close();
    }));
});
