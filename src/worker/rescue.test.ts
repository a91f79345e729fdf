import { describe, expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import { Mulligan } from '../mulligan.ts';
import { decide } from '../retry/decide.ts';
import type { RetryOptions } from '../retry/policy.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { ClaimedJob, Store } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { type Rescued, rescue } from './rescue.ts';

const LEASE_MS = 10_000;
const fixed = { backoff: { kind: 'fixed', base: '5s' }, jitter: 'none' } as const;

/** Jobs that a worker has claimed, which has gone silent since. */
async function silence(howMany: number, retry: RetryOptions = fixed) {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  const mulligan = await Mulligan.open(store, { clock, log: () => {} });
  const job = defineJob<number>({ name: 'job', retry, run: () => {} });
  await mulligan.enqueueMany(
    job,
    Array.from({ length: howMany }, (_, n) => n).map((input) => ({ input })),
  );
  const quota = { queue: 'default', share: howMany, retry: 0, redrive: 0, suspect: 0, maxRetriesInFlight: null };
  const claim = async (): Promise<ClaimedJob[]> =>
    (await store.claim({ worker: 'silent', leaseMs: LEASE_MS, limit: howMany, queues: [quota] })).jobs;
  return { clock, store, mulligan, claim, jobs: await claim() };
}

async function rescueAll(
  store: Pick<Store, 'expired' | 'settle'> & Partial<Pick<Store, 'report'>>,
  clock: VirtualClock,
): Promise<Rescued[]> {
  const rescued: Rescued[] = [];
  const whole: Pick<Store, 'expired' | 'settle' | 'report'> = {
    expired: (limit) => store.expired(limit),
    settle: (settlements) => store.settle(settlements),
    report: async (reports) => (await store.report?.(reports)) ?? [],
  };
  await rescue(whole, clock, (one) => rescued.push(one));
  return rescued;
}

describe('a rescuer', () => {
  it('sends no settlement for a running job before its lease has ended', async () => {
    const { clock, store, mulligan, jobs } = await silence(3);
    const sent: string[] = [];
    const watched = {
      expired: (limit: number) => store.expired(limit),
      settle(settlements: Parameters<Store['settle']>[0]) {
        sent.push(...settlements.map(({ id }) => id));
        return store.settle(settlements);
      },
    };
    await clock.advance(LEASE_MS - 1);
    expect(await rescueAll(watched, clock)).toEqual([]);
    expect(sent).toEqual([]);
    expect((await mulligan.stats()).states.running).toBe(3);
    await clock.advance(1);
    const rescued = await rescueAll(watched, clock);
    const all = jobs.map(({ id }) => id).toSorted();
    expect(rescued.map(({ job }) => job.id).toSorted()).toEqual(all);
    expect(sent.toSorted()).toEqual(all);
  });

  it('decides as everything else does, and dates the crash to the end of the lease however late it comes', async () => {
    const { clock, store, mulligan, jobs } = await silence(1, { ...fixed, deadline: '16s' });
    const job = jobs[0] as ClaimedJob;
    await clock.advance(60_000);
    const [rescued] = await rescueAll(store, clock);
    expect(rescued?.settlement.decision).toEqual(decide(job, { kind: 'crashed' }, job.leaseEndsAt, () => 0));
    expect(await mulligan.jobs.runs(job.id)).toMatchObject([
      {
        run: 1,
        outcome: 'crashed',
        counted: true,
        worker: 'silent',
        startedAt: job.claimedAt,
        endedAt: job.leaseEndsAt,
        error: { name: 'Crashed', code: 'CRASHED', fingerprint: expect.any(String) },
        decision: { kind: 'retry', why: 'crash', delayMs: 5_000 },
      },
    ]);
    expect(await mulligan.jobs.get(job.id)).toMatchObject({ state: 'retrying', attempts: 1, crashes: 1, worker: null });
  });

  it.each([
    ['poison', { ...fixed, maxCrashes: 1 }],
    ['exhausted', { ...fixed, maxAttempts: 1 }],
    ['deadline', { ...fixed, deadline: '12s' }],
  ] as const)('buries a job whose policy says so (%s)', async (reason, retry) => {
    const { clock, store, mulligan, jobs } = await silence(1, retry);
    await clock.advance(LEASE_MS);
    const [rescued] = await rescueAll(store, clock);
    expect(rescued?.settlement.decision).toMatchObject({ kind: 'dead', reason });
    expect(await mulligan.jobs.get((jobs[0] as ClaimedJob).id)).toMatchObject({ state: 'dead', deadReason: reason });
  });

  it('ends a job as cancelled that was to be cancelled', async () => {
    const { clock, store, mulligan, jobs } = await silence(1);
    const { id } = jobs[0] as ClaimedJob;
    expect(await mulligan.jobs.cancel(id)).toBe('cancelling');
    await clock.advance(LEASE_MS);
    await rescueAll(store, clock);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'cancelled', crashes: 1 });
  });

  it('tells of a job that was cancelled after it had decided to retry it', async () => {
    const { clock, store, mulligan, jobs } = await silence(1);
    const { id } = jobs[0] as ClaimedJob;
    await clock.advance(LEASE_MS);
    const overtaken = {
      expired: (limit: number) => store.expired(limit),
      async settle(settlements: Parameters<Store['settle']>[0]) {
        await store.cancel([id]);
        return store.settle(settlements);
      },
    };
    expect(await rescueAll(overtaken, clock)).toMatchObject([
      { settlement: { decision: { kind: 'retry' } }, answer: 'cancelled' },
    ]);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'cancelled' });
  });

  it('takes them all, however many there are', async () => {
    const { clock, store, mulligan } = await silence(500);
    await clock.advance(LEASE_MS);
    expect(await rescueAll(store, clock)).toHaveLength(500);
    expect((await mulligan.stats()).states).toMatchObject({ running: 0, retrying: 500 });
  });

  it('counts and reports each crash once, when another rescuer has found the same jobs before either writes', async () => {
    const { clock, store, mulligan, jobs } = await silence(250);
    await clock.advance(LEASE_MS);
    const bothLooked = Promise.withResolvers<void>();
    let looks = 0;
    const careful = {
      async expired(limit: number) {
        const found = await store.expired(limit);
        if (++looks === 2) bothLooked.resolve();
        await bothLooked.promise;
        return found;
      },
      settle: (settlements: Parameters<Store['settle']>[0]) => store.settle(settlements),
    };
    const both = await Promise.all([rescueAll(careful, clock), rescueAll(careful, clock)]);
    const reported = both.flat().map(({ job }) => job.id);
    expect(reported.toSorted()).toEqual(jobs.map(({ id }) => id).toSorted());
    for (const { id } of jobs) {
      expect(await mulligan.jobs.runs(id)).toHaveLength(1);
      expect(await mulligan.jobs.get(id)).toMatchObject({ crashes: 1, attempts: 1 });
    }
  });

  it('loses to a heartbeat that comes just in time: the run goes on', async () => {
    const { clock, store, mulligan, jobs } = await silence(2);
    const [back, gone] = jobs as [ClaimedJob, ClaimedJob];
    await clock.advance(LEASE_MS);
    const late = {
      expired: (limit: number) => store.expired(limit),
      async settle(settlements: Parameters<Store['settle']>[0]) {
        const { id, run, worker } = back;
        await store.heartbeat([{ id, run, worker, leaseMs: LEASE_MS }]);
        return store.settle(settlements);
      },
    };
    expect((await rescueAll(late, clock)).map(({ job }) => job.id)).toEqual([gone.id]);
    expect(await mulligan.jobs.get(back.id)).toMatchObject({ state: 'running', runs: 1, crashes: 0 });
    expect(await mulligan.jobs.runs(back.id)).toEqual([]);
  });

  it('changes nothing about a job that was claimed again meanwhile', async () => {
    const { clock, store, mulligan, jobs, claim } = await silence(1, { ...fixed, backoff: { kind: 'fixed', base: 0 } });
    const { id } = jobs[0] as ClaimedJob;
    await clock.advance(LEASE_MS);
    const stale = await store.expired(10);
    await rescueAll(store, clock);
    expect(await claim()).toMatchObject([{ id, run: 2 }]);
    const late = {
      expired: async () => stale.splice(0),
      settle: (all: Parameters<Store['settle']>[0]) => store.settle(all),
    };
    await rescueAll(late, clock);
    expect(await mulligan.jobs.get(id)).toMatchObject({ state: 'running', runs: 2, crashes: 1 });
  });
});
