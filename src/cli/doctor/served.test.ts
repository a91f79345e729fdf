import { describe, expect, it } from 'vitest';
import type { RegisteredWorker } from '../../store/store.ts';
import { leases } from './leases.ts';
import { servedChecks } from './served.ts';

const NOW = 1_000_000_000;

function worker(id: string, seenAgoMs: number): RegisteredWorker {
  return {
    ...{ id, name: null, version: null, mulligan: '0.1.0', host: 'a', pid: 1, concurrency: 10 },
    ...{ queues: ['default'], jobs: ['x'], startedAt: 0 },
    ...{ lastSeenAt: NOW - seenAgoMs, alive: seenAgoMs < 60_000 },
  };
}

describe('the check of workers', () => {
  const workers = (...seenAgoMs: number[]) =>
    servedChecks(
      [],
      seenAgoMs.map((ms, index) => worker(`w${index}`, ms)),
      NOW,
    )[0];

  it('says when workers were last seen, and not that they live', () => {
    expect(workers(4_000)).toMatchObject({ health: 'ok', found: '1 worker, last seen 4s ago' });
    expect(workers(13_000, 4_000, 22_000)).toMatchObject({
      ...{ health: 'ok', found: '3 workers, last seen 4s to 22s ago' },
    });
  });

  it('warns of workers that were not seen for longer than a living one ever is', () => {
    expect(workers(4_000, 40_000)).toMatchObject({
      ...{ health: 'warn', found: '1 worker, last seen 4s ago; 1 is silent, last seen: w1 (40s ago)' },
    });
    expect(workers(45_000, 40_000, 300_000)).toMatchObject({
      health: 'warn',
      found: '2 are silent, last seen: w0 (45s ago), w1 (40s ago); 1 was lost: w2 (5m ago)',
    });
  });
});

describe('the check of leases', () => {
  const check = (expiredAgoMs: number, ...seenAgoMs: number[]) =>
    leases(
      { now: NOW, expiredLeases: 3, oldestLeaseEndedAt: NOW - expiredAgoMs },
      seenAgoMs.map((ms) => worker('w', ms)),
    );

  it('promises a rescue only when a worker was seen after a lease had expired', () => {
    expect(check(5_000, 2_000).found).toMatch(/^3 leases have expired, the oldest 5s ago; a worker was seen since/);
    expect(check(5_000, 9_000, 12_000)).toMatchObject({
      ...{ health: 'ok', found: expect.stringMatching(/no worker was seen since: look again in 30s$/) },
    });
  });

  it('warns when no worker was seen lately, or none has rescued them for a minute', () => {
    expect(check(5_000)).toMatchObject({ health: 'warn' });
    expect(check(5_000, 40_000)).toMatchObject({ health: 'warn' });
    expect(check(61_000, 2_000)).toMatchObject({ health: 'warn' });
  });
});
