import type { Scenario } from '../../../src/simulate/index.ts';

const serviceTime = { kind: 'lognormal', median: '50ms', p99: '300ms' } as const;
/** Few jobs, so that a browser has an answer in seconds. `mulligan simulate` has larger ones. */
const small = { duration: '8m', arrivals: { kind: 'constant', rate: 5 } } as const;
const dependency = { serviceTime, capacity: 15 } as const;

export const scenarios: Readonly<Record<string, Scenario>> = {
  'down for 3 minutes': { ...small, dependency: { ...dependency, outages: [{ from: '1m', until: '4m' }] } },
  'slow, and 40 % fail': {
    ...small,
    dependency: {
      ...dependency,
      outages: [{ from: '1m', until: '4m', answer: 'unavailable', share: 0.4, slowdown: 3 }],
    },
  },
  'down 20 s of every minute': {
    ...small,
    dependency: { ...dependency, outages: [{ from: '1m', until: '80s', every: '1m', times: 5 }] },
  },
  'a bad deploy for 2 minutes': {
    ...small,
    dependency: { ...dependency, outages: [{ from: '1m', until: '3m', answer: 'bug' }] },
  },
};
