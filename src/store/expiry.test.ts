import { describe, expect, it } from 'vitest';
import { type Outage, suspendedUntil } from './expiry.ts';

const outage = (changes: Partial<Outage> = {}): Outage => ({
  now: 10_000_000,
  awayMs: 60_000,
  lastLookAt: 9_900_000,
  longestLeaseMs: 30_000,
  ...changes,
});

describe('lease expiry', () => {
  it('is suspended for a reconnection and a third of the longest lease after an outage', () => {
    expect(suspendedUntil(outage())).toBe(10_013_000);
  });

  it('is never suspended for longer than the longest lease, however long the outage was', () => {
    expect(suspendedUntil(outage({ longestLeaseMs: 2_000 }))).toBe(10_002_000);
    expect(suspendedUntil(outage({ awayMs: 3_600_000, lastLookAt: 0 }))).toBe(10_013_000);
  });

  it('is suspended when no process has looked for expired leases before', () => {
    expect(suspendedUntil(outage({ lastLookAt: null }))).toBe(10_013_000);
  });

  it('is not suspended when another process reached the store meanwhile', () => {
    expect(suspendedUntil(outage({ lastLookAt: 9_990_000 }))).toBeNull();
  });

  it('is not suspended without an absence or without a lease', () => {
    expect(suspendedUntil(outage({ awayMs: 0 }))).toBeNull();
    expect(suspendedUntil(outage({ longestLeaseMs: 0 }))).toBeNull();
  });
});
