import { describe, expect, it } from 'vitest';
import type { RegisteredWorker } from '../../store/store.ts';
import { leases } from './leases.ts';
import { servedChecks } from './served.ts';

const NOW = 1_000_000_000;

function worker(id: string, seenAgoMs: number): RegisteredWorker {
  return {
    ...{ id, name: null, version: null, mulligan: '0.1.0', host: 'a', pid: 1, concurrency: 10 },
    ...{ queues: ['default'], jobs: ['x'], startedAt: 0 },
    ...{ running: 1, leaseMs: 30_000, loopDelayMs: 14, http: null },
    ...{ lastSeenAt: NOW - seenAgoMs, alive: seenAgoMs < 60_000 },
    state: seenAgoMs < 30_000 ? 'alive' : seenAgoMs < 60_000 ? 'silent' : 'lost',
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

describe('the checks of what is served', () => {
  const waiting = {
    ...{ queue: 'default', name: 'x', count: 3, due: 3, oldestDueAt: NOW, gate: null, limits: [], isAside: false },
  };
  const find = (name: string, ...workers: RegisteredWorker[]) =>
    servedChecks([waiting], workers, NOW).find((check) => check.name === name);

  it('a worker that speaks HTTP and names no jobs takes all of its queues', () => {
    const script = { ...worker('script', 0), jobs: [] };
    expect(find('job names', script)).toMatchObject({ health: 'warn', found: 'no live worker knows x (3 jobs)' });
    const http = { agent: null, takesAll: true };
    expect(find('job names', { ...script, http })).toMatchObject({ health: 'ok' });
    expect(find('queues', { ...script, http })).toMatchObject({ health: 'ok' });
  });

  it('warns of an event loop that was blocked so long that leases may have expired', () => {
    expect(find('event loops', worker('a', 0), { ...worker('b', 0), loopDelayMs: 14_999 })).toMatchObject({
      ...{ health: 'ok', found: 'blocked for 15s at most in the last minutes' },
    });
    expect(find('event loops', worker('a', 0), { ...worker('b', 0), loopDelayMs: 15_000 })).toMatchObject({
      ...{ health: 'warn', found: 'blocked so long that leases are in danger: b for 15s, with leases of 30s' },
    });
    expect(find('event loops', { ...worker('earlier', 0), loopDelayMs: null })).toBeUndefined();
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
