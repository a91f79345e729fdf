import { describe, expect, it } from 'vitest';
import { knownError, makeLedger, START } from '../../test/support/known-process.ts';
import { defineJob } from '../definition.ts';
import { RetryAfter } from '../retry/control-errors.ts';
import { defaultPolicy } from '../retry/resolve.ts';
import { claim, complete, die, newJobs, pruneWith, settlement } from '../store/conformance/builders.ts';
import type { LedgerJob } from '../store/ledger.ts';
import { ledger } from '../store/memory/ledger.ts';
import type { Row } from '../store/memory/row.ts';
import type { MemoryState } from '../store/memory/state.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { emptyTotals } from '../store/totals.ts';
import { testQueue } from '../testing/queue.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { advise } from './advise.ts';
import type { LedgerStore } from './read.ts';

const HOUR_MS = 3_600_000;

describe('mulligan.advise', () => {
  it('finds the attempts that never succeed in what a worker has written', async () => {
    const sync = defineJob<number>({
      name: 'shop.sync',
      retry: { maxAttempts: 8, backoff: { kind: 'fixed', base: '10s' }, jitter: 'none' },
      resource: false,
      run(shop, { attempt }) {
        // Of 5 shops one answers at once, one at attempt 2, one at attempt 3, and two never.
        const needed = [1, 2, 3][shop % 5];
        if (needed !== undefined && attempt >= needed) return;
        if (attempt === 1 && shop % 5 === 4) throw new RetryAfter('1s', 'busy');
        throw Object.assign(new Error(`shop ${shop} is locked`), { code: 'LOCKED' });
      },
    });
    await using queue = await testQueue({ jobs: [sync] });
    for (let hour = 0; hour < 10; hour++) {
      await queue.mulligan.enqueueMany(
        sync,
        Array.from({ length: 80 }, (_, index) => ({ input: index })),
      );
      await queue.drain();
      await queue.clock.advance(HOUR_MS);
    }
    const advice = await queue.mulligan.advise({ days: 1 });
    expect(advice).toMatchObject({ read: 800, jobs: 800, isSampled: false, isPruned: false });
    // The first jobs ended ten hours ago, and some minutes that the retries took.
    expect((advice.now - (advice.oldestAt ?? 0)) / HOUR_MS).toBeCloseTo(10, -1);
    expect(advice.names[0]?.proposals[0]?.text).toMatch(/never succeeded in 10h/);
    const [name] = advice.names;
    expect(name).toMatchObject({ name: 'shop.sync', jobs: 800, failed: 640, tooSmall: null });
    expect(name?.retries.recovered).toBe(320);
    expect(name?.attempts.slice(0, 3)).toMatchObject([
      { attempt: 2, tried: 640, succeeded: 160, afterMs: 10_000 },
      { attempt: 3, tried: 480, succeeded: 160, afterMs: 20_000 },
      { attempt: 4, tried: 320, succeeded: 0, afterMs: null },
    ]);
    const proposal = name?.proposals.find(({ setting }) => setting === 'maxAttempts');
    expect(proposal).toMatchObject({ maxAttempts: 3, runsSaved: 320 * 5, jobsLost: 0 });
    expect((await queue.mulligan.advise({ name: 'another' })).names).toEqual([]);
    await expect(queue.mulligan.advise({ days: 0 })).rejects.toThrow('advise: days: expected a number from');
  });

  it('counts each life of a redriven job by itself', async () => {
    let isFixed = false;
    const job = defineJob<number>({
      name: 'a',
      retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '1s' } },
      resource: false,
      run() {
        if (!isFixed) throw new Error('broken');
      },
    });
    await using queue = await testQueue({ jobs: [job] });
    const { id } = await queue.mulligan.enqueue(job, 1);
    await queue.drain();
    isFixed = true;
    await queue.mulligan.dead.redrive({ ids: [id] });
    await queue.drain();
    const [name] = (await queue.mulligan.advise()).names;
    // The second life completed at its first attempt, so no retry has ever recovered.
    expect(name).toMatchObject({ jobs: 2, failed: 1, retries: { runs: 1, recovered: 0 } });
    expect(name?.attempts).toMatchObject([{ attempt: 2, tried: 1, succeeded: 0 }]);
  });
});

describe('where completed jobs were deleted', () => {
  async function pruned(): Promise<{ store: MemoryStore; clock: VirtualClock; end(decision: object): Promise<void> }> {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    const end = async (decision: object): Promise<void> => {
      await store.enqueue(newJobs(3));
      const { jobs } = await claim(store);
      await store.settle(jobs.map((job) => settlement(job, decision as typeof complete)));
    };
    await end(complete);
    await end(die());
    await clock.advance(2 * HOUR_MS);
    await pruneWith(store, { completedMs: HOUR_MS, deadMs: null, cancelledMs: null }, 100);
    return { store, clock, end };
  }

  it('looks back no further than the completed jobs that are left', async () => {
    const { store, clock, end } = await pruned();
    await end(complete);
    const from = clock.now();
    await end(die());
    const advice = await advise(store, clock);
    expect(advice).toMatchObject({ isPruned: true, since: from, read: 6 });
    expect(advice.names[0]).toMatchObject({ jobs: 6, failed: 3 });
  });

  it('says nothing when none is left: dead jobs alone would look as if nothing ever succeeded', async () => {
    const { store, clock } = await pruned();
    expect(await advise(store, clock)).toMatchObject({ isPruned: true, read: 0, names: [] });
  });

  it('looks back as far as asked while none was deleted', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    await store.enqueue(newJobs(2));
    const { jobs } = await claim(store);
    await store.settle(jobs.map((job) => settlement(job, die())));
    expect(await advise(store, clock, { days: 2 })).toMatchObject({
      isPruned: false,
      since: clock.now() - 48 * HOUR_MS,
    });
  });
});

/** A store with a ledger of more jobs than are read. */
function largeStore(jobs: readonly LedgerJob[]): LedgerStore & { readonly looked: () => number } {
  const rows = new Map(jobs.map((job, index) => [job.id, toRow(job, index)]));
  const now = START + 48 * HOUR_MS;
  const [completed, dead] = (['completed', 'dead'] as const).map(
    (state) => jobs.filter((job) => job.state === state).length,
  );
  const totals = { ...emptyTotals(), runs: { ...emptyTotals().runs, completed: completed as number } };
  const states = { scheduled: 0, ready: 0, running: 0, retrying: 0, cancelled: 0, completed, dead };
  let looked = 0;
  return {
    looked: () => looked,
    ledger: async (request) => {
      const page = ledger({ rows } as unknown as MemoryState, request, now);
      looked += page.looked;
      return page;
    },
    count: async ({ state }) => ({ count: (state === 'completed' ? completed : dead) as number, isExact: true }),
    stats: async () => ({ now, rows: [{ queue: 'default', name: 'email.send', states, totals }] }) as never,
  };
}

function toRow({ id, name, state, deadReason, finishedAt, runs }: LedgerJob, accepted: number): Row {
  const errorOf = (fingerprint: string | null): object | null =>
    fingerprint === null ? null : knownError(fingerprint);
  const own = runs.map((run) => ({ ...run, error: errorOf(run.fingerprint) }));
  return { id, name, state, deadReason, finishedAt, accepted, policy: defaultPolicy, ledger: own } as unknown as Row;
}

describe('a large ledger', () => {
  const succeeds = (attempt: number): number => [0.5, 0.3][attempt - 2] ?? 0;
  const jobs = makeLedger({
    errors: [{ error: knownError('BusyError'), succeeds }],
    jobs: 60_000,
    policy: { maxAttempts: 4 },
  });

  it('is drawn from, and each figure is given with a bound that holds', async () => {
    const store = largeStore(jobs);
    const advice = await advise(store, new VirtualClock());
    expect(advice.isSampled).toBe(true);
    expect(store.looked()).toBeLessThan(53_000);
    expect(advice.read).toBeLessThan(53_000);
    expect(advice.jobs).toBeCloseTo(60_000, -1);
    const [name] = advice.names;
    const trueShares = [2, 3, 4].map((attempt) => {
      const tries = jobs.flatMap(({ runs }) => runs.filter((run) => run.attempt === attempt));
      return tries.filter(({ outcome }) => outcome === 'completed').length / tries.length;
    });
    for (const [index, { share, low, high }] of (name?.attempts ?? []).entries()) {
      expect(low).toBeLessThanOrEqual(trueShares[index] as number);
      expect(high).toBeGreaterThanOrEqual(trueShares[index] as number);
      expect(high - low).toBeLessThan(0.03);
      expect(share).toBeGreaterThanOrEqual(low);
    }
    const proposal = name?.proposals.find(({ setting }) => setting === 'maxAttempts');
    const wasted = jobs.flatMap(({ runs }) => runs.filter(({ attempt }) => attempt > 3)).length;
    expect(proposal).toMatchObject({ maxAttempts: 3, jobsLost: 0 });
    expect(Math.abs((proposal?.runsSaved ?? 0) - wasted)).toBeLessThan(2 * (proposal?.runsSavedBound ?? 0));
    expect(proposal?.runsSavedBound).toBeLessThan(0.02 * wasted);
    expect(proposal?.text).toMatch(/lost no job of the sample \(at most \d of all, 95 % sure\)\.$/);
  });

  it('is drawn from more often for a name that is rare in it', async () => {
    const rare = jobs.map((job, index) => (index % 100 < 2 ? { ...job, name: 'rare' } : job));
    const store = largeStore(rare);
    const { names, read } = await advise(store, new VirtualClock(), { name: 'rare' });
    expect(store.looked()).toBeGreaterThan(300_000);
    // Nearly all of them are found, and none is counted twice.
    expect(read).toBeGreaterThan(1_000);
    expect(read).toBeLessThanOrEqual(1_200);
    expect(names[0]?.jobs).toBeGreaterThan(1_050);
    expect(names[0]?.jobs).toBeLessThan(1_350);
  });
});
