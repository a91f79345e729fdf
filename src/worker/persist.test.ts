import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../errors.ts';
import type { ClaimedJob } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Lease } from './lease.ts';
import { untilRecorded, whileLeased } from './persist.ts';

const LEASE_MS = 5_000;

/** A store that is away for `awayMs`, and what came of a call to it that began with a fresh lease. */
async function callDuring(awayMs: number, seed: number): Promise<string> {
  const clock = new VirtualClock({ seed });
  const lease = new Lease({ claimedAt: 0 } as ClaimedJob, LEASE_MS, clock.monotonic(), clock);
  const call = async (): Promise<string> => {
    if (clock.monotonic() < awayMs) throw new StoreUnavailableError('away');
    return lease.ended ? 'too late' : 'in time';
  };
  const answer = whileLeased([lease], clock, call).catch(() => 'gave up');
  await clock.advance(LEASE_MS * 2);
  return answer;
}

describe('a call that must be heard while the lease lasts', () => {
  it('is tried again before the lease ends, however the pauses fall', async () => {
    const answers = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) answers.add(await callDuring(LEASE_MS - 150, seed));
    expect([...answers]).toEqual(['in time']);
  });

  it('lets the error out when the lease is over', async () => {
    expect(await callDuring(Number.POSITIVE_INFINITY, 1)).toBe('gave up');
  });
});

describe('a settlement', () => {
  /** What came of one that met `error` for three leases, in a worker that is asked to stop after `stopsAfterMs`. */
  async function settleDuring(error: Error, stopsAfterMs = Number.POSITIVE_INFINITY): Promise<string> {
    const clock = new VirtualClock();
    const startedAt = clock.monotonic();
    const passedMs = (): number => clock.monotonic() - startedAt;
    const lease = new Lease({ claimedAt: 0 } as ClaimedJob, LEASE_MS, startedAt, clock);
    const call = async (): Promise<string> => {
      if (passedMs() < 3 * LEASE_MS) throw error;
      return 'recorded';
    };
    const isStopping = (): boolean => passedMs() >= stopsAfterMs;
    const answer = untilRecorded([lease], clock, call, { isStopping, onRetry: () => {} }).catch(() => 'gave up');
    await clock.advance(LEASE_MS * 6);
    return answer;
  }

  it('is sent again after its lease is over, while the store cannot be reached', async () => {
    expect(await settleDuring(new StoreUnavailableError('away'))).toBe('recorded');
  });

  it('is given up with its lease when the worker stops', async () => {
    expect(await settleDuring(new StoreUnavailableError('away'), LEASE_MS / 2)).toBe('gave up');
  });

  it('is given up with its lease when the store refuses it', async () => {
    expect(await settleDuring(new TypeError('a mistake'))).toBe('gave up');
  });
});
