import { beforeAll, describe, expect, it } from 'vitest';
import { ConfigError } from '../errors.ts';
import { drawSimulation, type PolicyRun, type Scenario, type SimulationResult } from './index.ts';
import { simulate } from './simulate.ts';

const outage = {
  name: 'short outage',
  duration: '2m',
  arrivals: { kind: 'constant', rate: 5 },
  dependency: {
    serviceTime: { kind: 'lognormal', median: '50ms', p99: '300ms' },
    capacity: 40,
    outages: [{ from: '30s', until: '60s' }],
  },
} as const satisfies Scenario;
const calm = { ...outage, dependency: { ...outage.dependency, outages: [] } } as const;

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function only({ runs }: SimulationResult): PolicyRun {
  expect(runs).toHaveLength(1);
  return runs[0] as PolicyRun;
}

describe('simulate', () => {
  /** Read by several tests, as most of the time goes into it. */
  let all: SimulationResult;
  beforeAll(async () => {
    all = await simulate(outage, { policies: ['standard', 'no-gate', 'soft-gate', 'patient'] });
  });

  it('gives the same figures for the same seed, to the digit, and others for another seed', async () => {
    // The order of the policies, and which others there are, change nothing.
    const again = await simulate(outage, { policies: ['no-gate', 'standard'], seed: 1 });
    expect(again).toEqual({ ...all, runs: [all.runs[1], all.runs[0]] });
    const other = only(await simulate(outage, { policies: ['standard'], seed: 5 }));
    expect(other.series.calls).not.toEqual(all.runs[0]?.series.calls);
  });

  it('an outage kills jobs without a gate, and none behind one; arrivals are the same', () => {
    const [gated, bare, soft] = all.runs as [PolicyRun, PolicyRun, PolicyRun];
    expect(bare.series.arrivals).toEqual(gated.series.arrivals.slice(0, bare.series.arrivals.length));
    expect(gated.figures).toMatchObject({ dead: 0, left: 0, completed: gated.figures.arrived });
    expect(bare.figures.dead).toBeGreaterThan(90);
    expect(bare.figures.deadByReason).toEqual({ exhausted: bare.figures.dead });
    expect(bare.figures.callsInOutage).toBeGreaterThan(10 * gated.figures.callsInOutage);
    expect(soft.figures.dead).toBe(0);
    expect([gated.series.gate.includes('open'), gated.series.gate.includes('ramp'), gated.series.gate.at(0)]).toEqual([
      true,
      true,
      'closed',
    ]);
    expect(bare.series.gate).toEqual([]);
    expect(soft.series.gate).toContain('open');
    expect(gated.figures.attemptsSpared).toBeGreaterThan(0);
    expect(gated.figures.recoveredAfterMs).toBeGreaterThan(10_000);
    expect(gated.figures.peakRate).toBeLessThan(20);
  });

  it.each(['standard', 'patient', 'no-gate'])('the figures of %s add up', (name) => {
    const { figures, series } = all.runs.find(({ policy }) => policy.name === name) as PolicyRun;
    const { arrived, completed, dead, left, calls, failedCalls, attemptsBurnt, attemptsSpared } = figures;
    expect(completed + dead + left).toBe(arrived);
    expect([sum(series.arrivals), sum(series.calls), sum(series.dead)]).toEqual([arrived, calls, dead]);
    expect(sum(series.successes)).toBe(completed);
    expect(sum(series.failures)).toBe(failedCalls);
    expect(calls - failedCalls).toBe(completed);
    // Every failed run either cost an attempt or did not count.
    expect(attemptsBurnt + attemptsSpared).toBe(failedCalls);
    expect(sum(series.attemptsBurnt)).toBe(attemptsBurnt);
    expect(figures.retries).toBe(calls - arrived);
    const atEnd = Object.values(series.backlog).map((lane) => lane.at(-1));
    expect(sum(atEnd as number[])).toBe(left);
    const lengths = new Set([series.calls, series.backlog.fresh, series.backlog.retry].map((values) => values.length));
    expect([...lengths]).toEqual([series.calls.length]);
  });

  it('a call in two outages that overlap counts once', async () => {
    const outages = [
      { from: '20s', until: '50s' },
      { from: '10s', until: '30s' },
    ] as const;
    const dependency = { ...outage.dependency, outages };
    const result = await simulate({ ...outage, duration: '60s', drain: 0, dependency }, { policies: ['no-gate'] });
    const { figures, series } = only(result);
    expect(result.stepMs).toBe(1_000);
    expect(figures.callsInOutage).toBe(sum(series.calls.slice(10, 50)));
  });

  it('without trouble nothing fails and nothing waits', async () => {
    const { figures } = only(await simulate(calm));
    expect(figures).toMatchObject({ dead: 0, left: 0, failedCalls: 0, attemptsBurnt: 0, recoveredAfterMs: null });
    expect(figures.medianMs).toBeLessThan(70);
  });

  it('workers that are too few leave a backlog of fresh jobs', async () => {
    const { figures, series } = only(
      await simulate({
        ...calm,
        drain: 0,
        workers: 1,
        concurrency: 1,
        dependency: { serviceTime: { kind: 'fixed', mean: 300 } },
      }),
    );
    expect(figures.left).toBeGreaterThan(10);
    expect(series.backlog.fresh.at(-1)).toBeGreaterThan(10);
    expect(series.backlog.retry.at(-1)).toBe(0);
  });

  it('a limit of Mulligan bounds the calls', async () => {
    const limit = { rate: { limit: 2, per: '1s' } } as const;
    const { figures } = only(await simulate({ ...calm, drain: 0, limit }));
    expect(figures.peakRate).toBeLessThanOrEqual(2.1);
    expect(figures.left).toBeGreaterThan(200);
  });

  it('a backlog that is never worked off is no recovery, also when it came at once', async () => {
    const burst = { kind: 'burst', rate: 2, jobs: 500, at: '10s' } as const;
    const slow = {
      ...calm,
      drain: 0,
      arrivals: burst,
      dependency: { serviceTime: { kind: 'fixed', mean: '30s' } },
    } as const;
    const { figures } = only(await simulate(slow));
    expect(figures.left).toBeGreaterThan(300);
    expect(figures.recoveredAfterMs).toBeNull();
  });

  it('poison jobs die of their own fault, the same ones under each policy', async () => {
    const scenario = { ...calm, poison: { share: 0.1 } };
    const { runs } = await simulate(scenario, {
      policies: ['standard', 'no-gate', { name: 'two', retry: { maxAttempts: 2 } }],
    });
    const dead = runs.map(({ figures }) => figures.dead);
    expect(dead[0]).toBeGreaterThan(30);
    expect(dead).toEqual([dead[0], dead[0], dead[0]]);
    expect(runs[2]?.figures.attemptsBurnt).toBe(2 * (dead[0] as number));
  });

  it('a Retry-After holds the gate', async () => {
    const burst = { kind: 'burst', rate: 5, jobs: 300, at: '30s' } as const;
    const dependency = { ...calm.dependency, capacity: 10, overloadAnswer: 'too-many', retryAfter: '10s' } as const;
    const { series, figures } = only(await simulate({ ...calm, arrivals: burst, dependency }));
    expect(series.gate).toContain('held');
    expect(figures.dead).toBe(0);
  });

  it('tells how far it is, and stops when its signal aborts', async () => {
    const seen: { policy: string; done: number }[] = [];
    await simulate(calm, { policies: ['standard', 'patient'], onProgress: (progress) => seen.push(progress) });
    expect(seen.map(({ done }) => done)).toEqual(seen.map(({ done }) => done).sort((a, b) => a - b));
    expect(seen.at(-1)).toEqual({ policy: 'patient', done: 1 });
    const aborter = new AbortController();
    const stopped = simulate(calm, { signal: aborter.signal, onProgress: () => aborter.abort(new Error('enough')) });
    await expect(stopped).rejects.toThrow('enough');
  });

  it('its result is plain JSON', () => {
    expect(JSON.parse(JSON.stringify(all))).toEqual(all);
  });

  it.each<[unknown, string]>([
    [undefined, 'undefined'],
    [{}, 'an empty object'],
    [{ scenario: {}, runs: [] }, 'an object with the keys scenario, runs'],
    [{ scenario: {}, runs: [{ policy: 'standard' }] }, 'an object with the keys scenario, runs'],
  ])('a picture of %j is refused', (result, got) => {
    const message = `drawSimulation: expected a result of simulate, with scenario and runs, got ${got}.`;
    expect(() => drawSimulation(result as SimulationResult)).toThrow(new ConfigError(message));
  });

  it.each<[unknown, unknown, string]>([
    [{}, {}, 'scenario: expected the field duration'],
    [calm, { seed: -1 }, 'simulate: seed: expected a whole number from 0'],
    [calm, { policies: [] }, 'simulate: policies: expected at least one policy'],
    [calm, { policies: ['standard', 'standard'] }, 'expected policies with different names, got "standard"'],
    [calm, { policies: ['fast'] }, 'simulate: policies[0]: expected one of standard'],
    [calm, { polices: ['fast'] }, 'Did you mean policies?'],
  ])('%# is refused', async (scenario, options, message) => {
    await expect(simulate(scenario as Scenario, options as object)).rejects.toThrow(message);
  });
});
