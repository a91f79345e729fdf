import { describe, expect, it } from 'vitest';
import { newJob } from '../store/conformance/builders.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { ClaimedJob } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Lease } from './lease.ts';

const LEASE_MS = 30_000;

/** A lease of 30 s on a claim whose answer took `travelMs`. */
async function lease(travelMs = 0) {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  await store.enqueue([newJob()]);
  const askedAt = clock.monotonic();
  const quota = { queue: 'default', share: 1, retry: 0, redrive: 0, suspect: 0, maxRetriesInFlight: null };
  const { jobs } = await store.claim({ worker: 'worker', leaseMs: LEASE_MS, limit: 1, queues: [quota] });
  await clock.advance(travelMs);
  return { clock, askedAt, lease: new Lease(jobs[0] as ClaimedJob, LEASE_MS, askedAt, clock) };
}

describe('a lease', () => {
  it('has ended once its time is over, and not before', async () => {
    const { clock, lease: held } = await lease();
    await clock.advance(LEASE_MS - 1);
    expect(held.ended).toBe(false);
    await clock.advance(1);
    expect(held.ended).toBe(true);
    expect(held.lost).toBe(false);
  });

  it('counts from before the store was asked, so that it never ends later here than in the store', async () => {
    const { clock, lease: held } = await lease(10_000);
    await clock.advance(LEASE_MS - 10_000);
    expect(held.ended).toBe(true);
  });

  it('is lengthened by a heartbeat, counted from before that was sent', async () => {
    const { clock, lease: held } = await lease();
    await clock.advance(20_000);
    const askedAt = clock.monotonic();
    await clock.advance(5_000);
    held.renewed(askedAt, LEASE_MS);
    await clock.advance(24_999);
    expect(held.ended).toBe(false);
    await clock.advance(1);
    expect(held.ended).toBe(true);
  });

  it('that was lost has ended at once, and no heartbeat brings it back', async () => {
    const { clock, lease: held } = await lease();
    held.lose();
    held.renewed(clock.monotonic(), LEASE_MS);
    expect(held).toMatchObject({ ended: true, lost: true });
  });

  it('does not change when the wall clock is set', async () => {
    const { clock, lease: held } = await lease();
    const { storeNow } = held;
    clock.step(365 * 86_400_000);
    expect(held).toMatchObject({ ended: false, storeNow });
    clock.step(-2 * 365 * 86_400_000);
    await clock.advance(LEASE_MS);
    expect(held).toMatchObject({ ended: true, storeNow: storeNow + LEASE_MS });
  });

  it('knows store time from the claim on, in whole milliseconds', async () => {
    const { clock, lease: held } = await lease();
    await clock.advance(1_234.4);
    expect(held.storeNow).toBe(held.job.claimedAt + 1_234);
  });
});

describe('what the next heartbeat asks for', () => {
  it('is the usual lease', async () => {
    const { lease: held } = await lease();
    expect(held.wantedMs).toBe(LEASE_MS);
  });

  it('is what is left of an extension, so that heartbeats do not shorten it', async () => {
    const { clock, lease: held } = await lease();
    held.want(600_000);
    expect(held.wantedMs).toBe(600_000);
    await clock.advance(500_000);
    expect(held.wantedMs).toBe(100_000);
    await clock.advance(90_000);
    expect(held.wantedMs).toBe(LEASE_MS);
  });

  it('is never less than the usual lease', async () => {
    const { lease: held } = await lease();
    held.want(1_000);
    expect(held.wantedMs).toBe(LEASE_MS);
  });

  it('is a whole number of milliseconds', async () => {
    const { clock, lease: held } = await lease();
    held.want(600_000);
    await clock.advance(0.25);
    expect(held.wantedMs).toBe(600_000);
  });
});
