import { type Figures, type Scenario, simulate } from '../../src/simulate/index.ts';
import { readScenario } from '../../src/simulate/scenario.ts';
import { runReal } from './real.ts';

/*
 * The simulation beside one real run of the same scenario, with an outage of a minute: npm run simulate:compare. A figure
 * agrees when the real one is within 20% of the mean of ten seeds. One that differs by more than that from seed to seed
 * cannot agree better with one run; it must then be within what the seeds give.
 */

const scenario: Scenario = {
  name: 'outage-1m',
  duration: '6m',
  drain: '5m',
  arrivals: { kind: 'constant', rate: 10 },
  dependency: {
    serviceTime: { kind: 'lognormal', median: '50ms', p99: '300ms' },
    capacity: 30,
    outages: [{ from: '60s', until: '120s' }],
  },
};
const policies = ['standard', 'patient', 'no-gate'];
const SEEDS = 10;
const MOST_OFF = 0.2;
/** Of a handful, one more is 20%; a time is known to a step of a second. */
const NO_DIFFERENCE = { counts: 5, ms: 1_000 } as const;

const compared: readonly (keyof Figures)[] = [
  'arrived',
  'completed',
  'dead',
  'calls',
  'callsInOutage',
  'retries',
  'attemptsBurnt',
  'healthyRate',
  'peakRate',
  'largestBacklog',
  'recoveredAfterMs',
];
/** A real store and a busy machine take time of their own, which is not simulated: these are shown and not judged. */
const shown: readonly (keyof Figures)[] = ['medianMs', 'p99Ms'];

console.info(
  `Real workers and a real server for 6 minutes or more; ${policies.join(', ')} at once, each with its own.`,
);
const real = Promise.all(policies.map((policy) => runReal(readScenario(scenario), policy)));
const seen = await real;
let allAgree = true;
for (const [index, policy] of policies.entries()) {
  const simulated: Figures[] = [];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { runs } = await simulate(scenario, { policies: [policy], seed });
    simulated.push((runs[0] as (typeof runs)[number]).figures);
  }
  console.info(
    `\n${policy.padEnd(18)} ${['simulated', 'least', 'most', 'real', 'off'].map((title) => title.padStart(10)).join('')}`,
  );
  for (const name of [...compared, ...shown]) {
    const values = simulated.map((figures) => Number(figures[name] ?? Number.NaN));
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const [least, most] = [Math.min(...values), Math.max(...values)];
    const found = Number((seen[index] as Figures)[name] ?? Number.NaN);
    const off = mean === 0 ? Number(found !== 0) : found / mean - 1;
    const negligible = name.endsWith('Ms') ? NO_DIFFERENCE.ms : NO_DIFFERENCE.counts;
    const isClose = Math.abs(off) <= MOST_OFF || Math.abs(found - mean) <= negligible;
    const isInRange =
      most - least > MOST_OFF * mean && found >= least * (1 - MOST_OFF) && found <= most * (1 + MOST_OFF);
    const isJudged = compared.includes(name);
    const verdict = !isJudged
      ? '  (not judged)'
      : isClose
        ? ''
        : isInRange
          ? '  (differs as much by seed)'
          : '  DIFFERS';
    if (isJudged && !isClose && !isInRange) allAgree = false;
    const cells = [mean, least, most, found].map((value) =>
      (Math.round(value * 10) / 10).toLocaleString('en').padStart(10),
    );
    console.info(`  ${name.padEnd(17)}${cells.join('')} ${`${Math.round(off * 100)} %`.padStart(9)}${verdict}`);
  }
}
console.info(allAgree ? '\nThe figures agree.' : '\nSome figures differ.');
process.exitCode = allAgree ? 0 : 1;
