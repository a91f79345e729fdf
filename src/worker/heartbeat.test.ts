import { describe, expect, it } from 'vitest';
import type { ClaimedJob, Heartbeat, HeartbeatAnswer } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { ActiveJob } from './active-job.ts';
import { LeaseRenewer, type Renewable } from './heartbeat.ts';
import { Lease } from './lease.ts';

const LEASE_MS = 30_000;
const kept: HeartbeatAnswer = { kept: true, leaseEndsAt: 0, cancelRequested: false };

/** A renewer, its jobs, and a store that answers as the test says. */
function makeRenewer(count = 1) {
  const clock = new VirtualClock();
  const said: string[] = [];
  const jobs: Renewable[] = Array.from({ length: count }, (_, n) => ({
    lease: new Lease({ id: `job-${n}`, run: 1, worker: 'w', claimedAt: 0 } as ClaimedJob, LEASE_MS, 0, clock),
    unsentProgress: null,
    onLost: () => said.push(`job-${n} lost`),
    onCancel: () => said.push(`job-${n} to be cancelled`),
  }));
  const sent: { at: number; heartbeats: readonly Heartbeat[] }[] = [];
  const world = {
    answer: async (heartbeats: readonly Heartbeat[]): Promise<HeartbeatAnswer[]> => heartbeats.map(() => kept),
  };
  const store = {
    heartbeat(heartbeats: readonly Heartbeat[]) {
      sent.push({ at: clock.monotonic(), heartbeats });
      return world.answer(heartbeats);
    },
  };
  const renewer = new LeaseRenewer(
    store,
    clock,
    LEASE_MS,
    () => jobs,
    (error) => said.push((error as Error).message),
  );
  return { clock, renewer, jobs, sent, said, world, first: jobs[0] as Renewable };
}

describe('a lease renewer', () => {
  it('renews three times per lease, and so keeps it for as long as the store answers', async () => {
    const { clock, renewer, first, sent } = makeRenewer();
    renewer.start();
    await clock.advance(10 * LEASE_MS - 1);
    expect(sent.slice(0, 3).map(({ at }) => at)).toEqual([10_000, 20_000, 30_000]);
    expect(first.lease.ended).toBe(false);
    renewer.stop();
    await clock.advance(LEASE_MS);
    expect(first.lease.ended).toBe(true);
  });

  it('goes on renewing while the store hangs or fails, and reports each failure', async () => {
    const { clock, renewer, sent, said, world } = makeRenewer();
    world.answer = () => new Promise(() => {});
    renewer.start();
    await clock.advance(20_000);
    world.answer = () => Promise.reject(new Error('away'));
    await clock.advance(20_000);
    expect(sent).toHaveLength(4);
    expect(said).toEqual(['away', 'away']);
    renewer.stop();
  });

  it('asks the store nothing when no job is active', async () => {
    const { clock, renewer, sent } = makeRenewer(0);
    renewer.start();
    await clock.advance(LEASE_MS);
    expect(sent).toEqual([]);
    renewer.stop();
  });

  it('passes on which jobs were lost and which are to be cancelled, and renews only what was kept', async () => {
    const { clock, renewer, jobs, said, world } = makeRenewer(3);
    for (const one of jobs) one.unsentProgress = '1';
    world.answer = async () => [{ kept: false }, kept, { ...kept, cancelRequested: true }];
    await clock.advance(20_000);
    renewer.renewSoon();
    await clock.advance(500);
    expect(said).toEqual(['job-0 lost', 'job-2 to be cancelled']);
    await clock.advance(10_000);
    expect(jobs.map(({ lease }) => lease.ended)).toEqual([true, false, false]);
    expect(jobs.map(({ unsentProgress }) => unsentProgress)).toEqual(['1', null, null]);
  });

  it('counts a lease from before it asked, however long the answer took', async () => {
    const { clock, renewer, first, world } = makeRenewer();
    const slow = Promise.withResolvers<HeartbeatAnswer[]>();
    world.answer = () => slow.promise;
    await clock.advance(10_000);
    const renewed = renewer.renew(first);
    await clock.advance(5_000);
    slow.resolve([kept]);
    expect(await renewed).toBe(true);
    await clock.advance(24_999);
    expect(first.lease.ended).toBe(false);
    await clock.advance(1);
    expect(first.lease.ended).toBe(true);
  });

  it('sends progress soon, once, in one heartbeat however often it is asked', async () => {
    const { clock, renewer, first, sent } = makeRenewer();
    first.unsentProgress = '50';
    renewer.renewSoon();
    renewer.renewSoon();
    await clock.advance(499);
    expect(sent).toEqual([]);
    await clock.advance(1);
    expect(sent).toMatchObject([
      { heartbeats: [{ id: 'job-0', run: 1, worker: 'w', leaseMs: LEASE_MS, progress: '50' }] },
    ]);
    renewer.renewSoon();
    await clock.advance(500);
    expect(sent[1]?.heartbeats[0]).not.toHaveProperty('progress');
    renewer.stop();
  });

  it('keeps progress that was made while a heartbeat was under way', async () => {
    const { clock, renewer, first, world } = makeRenewer();
    const slow = Promise.withResolvers<HeartbeatAnswer[]>();
    world.answer = () => slow.promise;
    first.unsentProgress = '50';
    const renewed = renewer.renew(first);
    first.unsentProgress = '60';
    slow.resolve([kept]);
    await renewed;
    expect(first.unsentProgress).toBe('60');
    await clock.advance(0);
  });

  it('sends much progress in several calls of bounded size, each job once', async () => {
    const { clock, renewer, jobs, sent } = makeRenewer(1_000);
    for (const job of jobs) job.unsentProgress = 'x'.repeat(16_000);
    renewer.renewSoon();
    await clock.advance(500);
    const bytes = sent.map(({ heartbeats }) =>
      heartbeats.reduce((sum, { progress }) => sum + (progress?.length ?? 0), 0),
    );
    expect(Math.max(...bytes)).toBeLessThanOrEqual(4 * 1_048_576);
    const ids = sent.flatMap(({ heartbeats }) => heartbeats.map(({ id }) => id));
    expect(ids).toEqual(jobs.map(({ lease }) => lease.job.id));
    renewer.stop();
  });

  it('writes whether a job runs alone only when it is told to', async () => {
    const { clock, renewer, first, sent } = makeRenewer();
    renewer.start();
    await renewer.renew(first, true);
    await clock.advance(10_000);
    await renewer.renew(first, false);
    expect(sent.map(({ heartbeats }) => heartbeats[0]?.alone)).toEqual([true, undefined, false]);
    renewer.stop();
  });

  it('sends nothing after it was stopped, whether it was started or not', async () => {
    const { clock, renewer, sent } = makeRenewer();
    renewer.start();
    renewer.renewSoon();
    renewer.stop();
    renewer.renewSoon();
    renewer.start();
    expect(clock.pending).toBe(0);
    await clock.advance(LEASE_MS);
    expect(sent).toEqual([]);
    const never = makeRenewer();
    never.renewer.stop();
    never.renewer.renewSoon();
    expect(never.clock.pending).toBe(0);
  });
});

describe('an active job', () => {
  const makeJob = (cancelRequested = false): ActiveJob => {
    const job = { id: 'job', run: 1, worker: 'w', claimedAt: 0, cancelRequested } as ClaimedJob;
    return new ActiveJob(new Lease(job, LEASE_MS, 0, new VirtualClock()));
  };

  it('is lost when a heartbeat says so, but not while its end is being recorded', () => {
    const [running, settling] = [makeJob(), makeJob()];
    settling.settlingSince = 0;
    for (const job of [running, settling]) job.onLost();
    expect([running.lease.lost, settling.lease.lost]).toEqual([true, false]);
  });

  it('is to be cancelled from the claim on, or from the heartbeat that says so', () => {
    expect(makeJob(true).cancelRequested).toBe(true);
    const job = makeJob();
    expect(job.cancelRequested).toBe(false);
    job.onCancel();
    expect(job.cancelRequested).toBe(true);
  });

  it('has no progress before it runs', () => {
    const job = makeJob();
    job.unsentProgress = '1';
    expect(job.unsentProgress).toBeNull();
  });
});
