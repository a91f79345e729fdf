import { describe, expect, it } from 'vitest';
import { readPolicy } from './policies.ts';
import { scenarioNames, scenarios } from './presets.ts';
import { readScenario, type Scenario } from './scenario.ts';

const least = {
  duration: '1m',
  arrivals: { kind: 'constant', rate: 10 },
  dependency: { serviceTime: { kind: 'fixed', mean: '50ms' } },
} as const satisfies Scenario;

describe('a scenario', () => {
  it('has defaults for all but duration, arrivals and service time', () => {
    expect(readScenario(least)).toEqual({
      name: 'scenario',
      description: '',
      durationMs: 60_000,
      drainMs: 600_000,
      arrivals: { kind: 'constant', rate: 10 },
      dependency: {
        serviceTime: { kind: 'fixed', meanMs: 50 },
        capacity: null,
        overload: 'fails',
        overloadAnswer: 'unavailable',
        retryAfterMs: null,
        callTimeoutMs: 10_000,
        errors: [],
        outages: [],
      },
      poison: { share: 0, answer: 'bug' },
      workers: 3,
      concurrency: 20,
      retryShare: 0.2,
      limit: null,
    });
  });

  it.each(scenarioNames)('the preset %s is valid and bears its name', (name) => {
    expect(readScenario(scenarios[name])).toMatchObject({ name, description: expect.stringMatching(/\.$/) });
  });

  it('an outage that repeats is several outages', () => {
    const outages = [{ from: '10s', until: '15s', every: '20s', times: 3 }] as const;
    const { dependency } = readScenario({ ...least, dependency: { ...least.dependency, outages } });
    expect(dependency.outages.map(({ fromMs, untilMs }) => [fromMs, untilMs])).toEqual([
      [10_000, 15_000],
      [30_000, 35_000],
      [50_000, 55_000],
    ]);
  });

  const { dependency } = least;
  it('may have errors that are 1 together but for a rounding, and an outage up to its end', () => {
    const errors = { bug: 0.33, invalid: 0.56, refused: 0.11 };
    const outages = [{ from: '50s', until: '60s' }] as const;
    expect(() => readScenario({ ...least, dependency: { ...dependency, errors, outages } })).not.toThrow();
  });

  it.each<[unknown, string]>([
    [null, 'scenario: expected an object with $schema, name, description, duration'],
    [{ ...least, duraton: 1 }, 'scenario: expected known fields only, got "duraton". Did you mean duration?'],
    [{ ...least, weather: 'bad' }, 'got "weather". Valid fields: $schema, name'],
    [
      { ...least, duration: '10 minutes' },
      "scenario.duration: expected a duration such as '500ms', '30s', '5m', '2h', '3d' or '1w', or a number of milliseconds, got \"10 minutes\".",
    ],
    [{ ...least, duration: '8d' }, 'scenario.duration: expected a duration from 1s to 7d, got "8d".'],
    [{ ...least, duration: 0 }, 'scenario.duration: expected a duration from 1s to 7d, got 0.'],
    [{ ...least, duration: true }, 'scenario.duration: expected '],
    [
      { duration: '1m', dependency },
      'scenario: expected the field arrivals, got an object with the keys duration, dependency.',
    ],
    [
      { ...least, arrivals: 'constant' },
      'scenario.arrivals: expected an object whose kind is one of constant, daily, burst, got "constant".',
    ],
    [
      { ...least, arrivals: { kind: 'constnt', rate: 1 } },
      'scenario.arrivals.kind: expected one of constant, daily, burst, got "constnt". Did you mean constant?',
    ],
    [
      { ...least, arrivals: { kind: 'constant', rate: 0 } },
      'scenario.arrivals.rate: expected a number above 0 up to 10000, got 0.',
    ],
    [
      { ...least, arrivals: { kind: 'constant', rate: '10' } },
      'scenario.arrivals.rate: expected a number above 0 up to 10000, got "10".',
    ],
    [
      { ...least, arrivals: { kind: 'daily', mean: 1, peak: 3 } },
      'scenario.arrivals.peak: expected from the mean to twice the mean, got 3.',
    ],
    [
      { ...least, arrivals: { kind: 'burst', rate: 1, jobs: 5, at: '2m' } },
      'scenario.arrivals.at: expected a time before the end of `duration`, got "2m".',
    ],
    [
      { ...least, arrivals: { kind: 'burst', rate: 1, jobs: 1.5, at: '2s' } },
      'scenario.arrivals.jobs: expected a whole number from 1 up to 1000000, got 1.5.',
    ],
    [
      { ...least, duration: '7d', arrivals: { kind: 'constant', rate: 100 } },
      'scenario: expected at most 2000000 jobs in all, got 60480000.',
    ],
    [{ ...least, dependency: {} }, 'scenario.dependency: expected the field serviceTime, got an empty object.'],
    [
      { ...least, dependency: { ...dependency, overload: 'slow' } },
      'scenario.dependency.overload: expected one of fails, metastable, got "slow".',
    ],
    [
      { ...least, dependency: { ...dependency, errors: { bug: 0.6, invalid: 0.6 } } },
      'scenario.dependency.errors: expected shares that are together at most 1, got 1.2.',
    ],
    [
      { ...least, dependency: { ...dependency, errors: { bug: 0.3, invalid: 0.4, refused: 0.6 } } },
      'scenario.dependency.errors: expected shares that are together at most 1, got 1.3.',
    ],
    [
      { ...least, dependency: { ...dependency, outages: [{ from: '2m', until: '3m' }] } },
      'scenario.dependency.outages[0].until: expected a time up to the end of `duration`, got "3m".',
    ],
    [
      { ...least, dependency: { ...dependency, outages: [{ from: 0, until: '10s', every: '20s', times: 4 }] } },
      'outages[0].times: expected at most 3, so that the last ends within `duration`, got 4.',
    ],
    [
      { ...least, dependency: { ...dependency, outages: {} } },
      'scenario.dependency.outages: expected a list, got an empty object.',
    ],
    [
      { ...least, dependency: { ...dependency, outages: [{ from: '5s', until: '5s' }] } },
      'scenario.dependency.outages[0].until: expected a time after `from`, got "5s".',
    ],
    [
      { ...least, dependency: { ...dependency, outages: [{ from: 0, until: 5, every: 9 }] } },
      'scenario.dependency.outages[0]: expected `every` and `times` together, or neither',
    ],
    [
      { ...least, dependency: { ...dependency, outages: [{ from: 0, until: '5s', every: '1s', times: 2 }] } },
      'outages[0].every: expected at least as long as the outage, got "1s".',
    ],
    [
      { ...least, dependency: { serviceTime: { kind: 'lognormal', median: '2s', p99: '1s' } } },
      'serviceTime.p99: expected at least the median, which is above 0, got "1s".',
    ],
    [{ ...least, workers: 0 }, 'scenario.workers: expected a whole number from 1 up to 100, got 0.'],
    [{ ...least, name: '' }, 'scenario.name: expected a text of 1 to 60 characters, got "".'],
    [{ ...least, poison: { share: 2 } }, 'scenario.poison.share: expected a number from 0 up to 1, got 2.'],
    [
      { ...least, limit: { rate: { limit: 5 } } },
      'scenario.limit.rate: expected the field per, got an object with the key limit.',
    ],
  ])('%j is refused with the field, what it expects and what it got', (scenario, message) => {
    expect(() => readScenario(scenario)).toThrow(message);
  });
});

describe('a policy', () => {
  it('is a name or an object', () => {
    expect(readPolicy('no-gate', 'policy')).toMatchObject({ name: 'no-gate', gate: 'none', retry: { maxAttempts: 4 } });
    expect(readPolicy({ name: 'mine', retry: { maxAttempts: 7, jitter: 'equal' } }, 'policy')).toEqual({
      name: 'mine',
      gate: 'resource',
      retry: { maxAttempts: 7, jitter: 'equal' },
    });
  });

  it.each<[unknown, string]>([
    ['patiant', 'policy: expected one of standard, financial'],
    ['patiant', 'got "patiant". Did you mean patient?'],
    [{ retry: {} }, 'policy: expected the field name, got an object with the key retry.'],
    [{ name: 'a', gate: 'no' }, 'policy.gate: expected one of resource, soft, none, got "no".'],
    [{ name: 'a', retry: { maxAttempts: 0 } }, 'policy.retry.maxAttempts: expected a whole number from 1'],
    [
      { name: 'a', retry: { jitter: 'some' } },
      'policy.retry.jitter: expected one of none, full, equal, decorrelated, got "some".',
    ],
    [
      { name: 'a', retry: { jitter: 3 } },
      'policy.retry.jitter: expected one of none, full, equal, decorrelated, or an object with spread, got 3.',
    ],
    [{ name: 'a', retry: { backoff: { kind: 'fixed' } } }, 'policy.retry.backoff.base: expected a duration'],
  ])('%j is refused', (policy, message) => {
    expect(() => readPolicy(policy, 'policy')).toThrow(message);
  });
});
