import type { Scenario } from './scenario.ts';

const serviceTime = { kind: 'lognormal', median: '50ms', p99: '300ms' } as const;

export const scenarioNames = [
  'outage-10m',
  'brownout',
  'rate-limit',
  'poison',
  'thundering-herd',
  'flapping',
  'bad-deploy',
] as const;
export type ScenarioName = (typeof scenarioNames)[number];

/** Each of one kind of trouble. */
export const scenarios: Readonly<Record<ScenarioName, Scenario>> = {
  'outage-10m': {
    name: 'outage-10m',
    description: 'A dependency that serves 60 calls/s refuses connections for 10 minutes; 20 jobs/s keep arriving.',
    duration: '30m',
    arrivals: { kind: 'constant', rate: 20 },
    dependency: { serviceTime, capacity: 60, outages: [{ from: '2m', until: '12m' }] },
  },
  brownout: {
    name: 'brownout',
    description: 'For 10 minutes 40% of the calls fail with 503, and the others take three times as long.',
    duration: '20m',
    arrivals: { kind: 'constant', rate: 20 },
    dependency: {
      serviceTime,
      capacity: 60,
      outages: [{ from: '2m', until: '12m', answer: 'unavailable', share: 0.4, slowdown: 3 }],
    },
  },
  'rate-limit': {
    name: 'rate-limit',
    description:
      'The dependency answers 429 with Retry-After 10 s beyond 30 calls/s; 2,000 jobs come at once beside 15 jobs/s.',
    duration: '10m',
    arrivals: { kind: 'burst', rate: 15, jobs: 2_000, at: '1m' },
    dependency: { serviceTime, capacity: 30, overloadAnswer: 'too-many', retryAfter: '10s' },
  },
  poison: {
    name: 'poison',
    description: '5% of the jobs fail at every attempt with 503, while the dependency is well.',
    duration: '10m',
    arrivals: { kind: 'constant', rate: 20 },
    dependency: { serviceTime, capacity: 60 },
    // Once no other jobs arrive, all calls fail: the gate would take that for an outage.
    drain: '30s',
    poison: { share: 0.05, answer: 'unavailable' },
  },
  'thundering-herd': {
    name: 'thundering-herd',
    description:
      '5,000 jobs come at once as an outage of a minute begins; afterwards, each call beyond 40 a second costs two others.',
    duration: '15m',
    arrivals: { kind: 'burst', rate: 20, jobs: 5_000, at: '2m' },
    dependency: {
      serviceTime,
      capacity: 40,
      overload: 'metastable',
      outages: [{ from: '2m', until: '3m' }],
    },
  },
  flapping: {
    name: 'flapping',
    description: 'The dependency is down for 20 s of every minute, ten times.',
    duration: '15m',
    arrivals: { kind: 'constant', rate: 20 },
    dependency: { serviceTime, capacity: 60, outages: [{ from: '1m', until: '80s', every: '1m', times: 10 }] },
  },
  'bad-deploy': {
    name: 'bad-deploy',
    description: 'A release with a bug makes every run fail for 3 minutes, until it is rolled back.',
    duration: '15m',
    drain: '30m',
    arrivals: { kind: 'constant', rate: 20 },
    dependency: { serviceTime, capacity: 60, outages: [{ from: '2m', until: '5m', answer: 'bug' }] },
  },
};
