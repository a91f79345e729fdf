import { describe, expect, it } from 'vitest';
import { ConfigError } from '../errors.ts';
import { planWork, readGrace, type WorkOptions } from './options.ts';

const queuePlan = { queue: 'default', weight: 1, retryShare: 0.2, maxRetriesInFlight: null };

const named = (all: string[], onlyRetries: string[] = []) => ({ all, onlyRetries: new Set(onlyRetries) });

describe('a plan of work', () => {
  it('has a default for everything', () => {
    expect(planWork({})).toEqual({
      queues: [queuePlan],
      concurrency: 10,
      leaseMs: 30_000,
      pollMs: 1_000,
      unknownJobTimeoutMs: 7 * 86_400_000,
      rejectedPayloadTimeoutMs: 3_600_000,
      name: null,
      version: null,
    });
    expect(planWork({}, named(['a', 'b'])).queues.map(({ queue }) => queue)).toEqual(['a', 'b']);
  });

  it.each<[string, WorkOptions, number]>([
    ['a fifth of the places, beside its queue', {}, 0.25],
    ['the share of the worker', { retryShare: 0.5 }, 1],
    ['a share of its own', { retryShare: 0.5, queues: { a: {}, 'a.retry': { retryShare: 0.75 } } }, 3],
    ['its share when it is listed', { queues: ['a', 'a.retry'] }, 0.25],
    ['a weight of its own', { queues: { a: {}, 'a.retry': { weight: 7 } } }, 7],
    ['next to nothing with a share of 0', { retryShare: 0 }, 0.001],
    ['nearly all with a share of 1', { retryShare: 1 }, 1_000],
  ])('gives a queue that only retries go to %s', (_, options, weight) => {
    expect(planWork(options, named(['a', 'a.retry'], ['a.retry'])).queues).toMatchObject([
      { queue: 'a', weight: 1 },
      { queue: 'a.retry', weight },
    ]);
  });

  it('serves the queues it is given, each by its own options, else by those of the worker', () => {
    const shared = { retryShare: 0.5, maxRetriesInFlight: 7 };
    expect(planWork({ ...shared, queues: ['a'] }).queues).toEqual([{ queue: 'a', weight: 1, ...shared }]);
    const own = { weight: 3, retryShare: 0, maxRetriesInFlight: 2 };
    expect(planWork({ ...shared, queues: { a: own, b: {} } }, named(['c'])).queues).toEqual([
      { queue: 'a', ...own },
      { queue: 'b', weight: 1, ...shared },
    ]);
  });

  it('takes what is just within the limits', () => {
    const least = { concurrency: 1, lease: '1s', poll: 0, retryShare: 0, maxRetriesInFlight: 1 } as const;
    expect(planWork({ ...least, queues: { a: { weight: 0.001 } } })).toMatchObject({
      concurrency: 1,
      leaseMs: 1_000,
      pollMs: 1,
      queues: [{ weight: 0.001, retryShare: 0, maxRetriesInFlight: 1 }],
    });
    expect(
      planWork({ concurrency: 10_000, lease: '365d', retryShare: 1, queues: { a: { weight: 1_000 } } }),
    ).toMatchObject({ concurrency: 10_000, leaseMs: 365 * 86_400_000, queues: [{ weight: 1_000, retryShare: 1 }] });
  });

  it.each<[unknown, string]>([
    [{ concurrency: 0 }, 'work: concurrency'],
    [{ concurrency: 10_001 }, 'work: concurrency'],
    [{ lease: 999 }, 'work: lease: expected at least 1s'],
    [{ lease: '366d' }, 'work: lease: expected at most 365d'],
    [{ retryShare: 1.1 }, 'work: queues.default.retryShare'],
    [{ retryShare: -0.1 }, 'work: queues.default.retryShare'],
    [{ maxRetriesInFlight: 0 }, 'work: queues.default.maxRetriesInFlight'],
    [{ queues: [] }, 'work: queues: expected at least one queue'],
    [{ queues: ['a', 'b', 'a'] }, 'work: queues: expected each queue once'],
    [{ queues: { a: { weight: 0 } } }, 'work: queues.a.weight'],
    [{ queues: { a: { weight: 1_001 } } }, 'work: queues.a.weight'],
    [{ queues: { a: { wieght: 1 } } }, 'Did you mean weight?'],
    [{ queue: ['a'] }, 'Did you mean queues?'],
  ])('refuses %o', (options, message) => {
    expect(() => planWork(options as WorkOptions)).toThrow(ConfigError);
    expect(() => planWork(options as WorkOptions)).toThrow(message);
  });
});

it('a grace is ten seconds, or what it is said to be', () => {
  expect(readGrace({}, 'stop')).toBe(10_000);
  expect(readGrace({ grace: 0 }, 'stop')).toBe(0);
  expect(() => readGrace({ grace: 'soon' as never }, 'stop')).toThrow(/^stop: grace: expected/);
});
