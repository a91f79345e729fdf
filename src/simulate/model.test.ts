import { describe, expect, it } from 'vitest';
import { seededRandom } from '../seeded-random.ts';
import { arrivalTimes } from './arrivals.ts';
import { Dependency } from './dependency.ts';
import { type DependencyOptions, readScenario, type Scenario } from './scenario.ts';

function read(scenario: Partial<Scenario> = {}, dependency: Partial<DependencyOptions> = {}) {
  return readScenario({
    duration: '100s',
    arrivals: { kind: 'constant', rate: 100 },
    ...scenario,
    dependency: { serviceTime: { kind: 'fixed', mean: 50 }, ...dependency },
  });
}

function times(arrivals: Scenario['arrivals'], duration: Scenario['duration'] = '100s'): number[] {
  const scenario = read({ arrivals, duration });
  return [...arrivalTimes(scenario.arrivals, scenario.durationMs, seededRandom(3))];
}

describe('arrivals', () => {
  it('come in order, at random, at the rate asked for', () => {
    const at = times({ kind: 'constant', rate: 100 });
    expect(at.length).toBeGreaterThan(9_700);
    expect(at.length).toBeLessThan(10_300);
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    const gaps = at.slice(1).map((one, index) => one - (at[index] as number));
    // Of a Poisson process, 1 - 1/e of the gaps are shorter than the mean.
    expect(gaps.filter((gap) => gap < 10).length / gaps.length).toBeCloseTo(0.632, 1);
  });

  it('follow a daily curve: peak at its time, as much below the mean half a period later', () => {
    const at = times({ kind: 'daily', mean: 100, peak: 180, period: '100s', peakAt: '25s' });
    const between = (from: number, until: number): number => at.filter((one) => one >= from && one < until).length;
    expect(between(20_000, 30_000) / 10).toBeGreaterThan(160);
    expect(between(70_000, 80_000) / 10).toBeLessThan(40);
    expect(at.length / 100).toBeGreaterThan(95);
    expect(at.length / 100).toBeLessThan(105);
  });

  it('of a burst come at one moment, beside the others', () => {
    const at = times({ kind: 'burst', rate: 10, jobs: 500, at: '40s' });
    expect(at.filter((one) => one === 40_000)).toHaveLength(500);
    expect(at).toEqual(at.toSorted((a, b) => a - b));
  });

  it('of a burst come also when nothing else arrives after them', () => {
    expect(times({ kind: 'burst', rate: 0.0001, jobs: 7, at: '40s' })).toEqual(Array(7).fill(40_000));
  });
});

describe('the dependency', () => {
  const make = (options: Partial<DependencyOptions>): Dependency =>
    new Dependency(read({}, options).dependency, seededRandom(5));
  const kinds = (dependency: Dependency, calls: number, everyMs: number, fromMs = 0): Map<string, number> => {
    const found = new Map<string, number>();
    for (let call = 0; call < calls; call++) {
      const { kind } = dependency.call(fromMs + call * everyMs, null);
      found.set(kind, (found.get(kind) ?? 0) + 1);
    }
    return found;
  };

  it('answers within its capacity, and turns the calls beyond it away', () => {
    expect(kinds(make({ capacity: 50 }), 1_000, 20)).toEqual(new Map([['ok', 1_000]]));
    const over = kinds(make({ capacity: 50, overloadAnswer: 'too-many' }), 1_000, 10);
    expect(over.get('ok')).toBeCloseTo(500, -1);
    expect(over.get('too-many')).toBeCloseTo(500, -1);
  });

  it('that is metastable serves next to nothing at 1.5 times its capacity, and recovers below it', () => {
    const dependency = make({ capacity: 100, overload: 'metastable' });
    const over = kinds(dependency, 3_000, 1_000 / 150);
    expect(over.get('ok') ?? 0).toBeLessThan(200);
    expect(kinds(dependency, 500, 20, 60_000)).toEqual(new Map([['ok', 500]]));
  });

  it('fails in an outage by its share, and answers slower', () => {
    const dependency = make({
      outages: [{ from: '1s', until: '2s', answer: 'unavailable', share: 0.5, slowdown: 4 }],
    });
    expect(dependency.call(999, null)).toEqual({ kind: 'ok', durationMs: 50 });
    const during = Array.from({ length: 1_000 }, (_, at) => dependency.call(1_000 + at * 0.9, null));
    const failed = during.filter(({ kind }) => kind === 'unavailable').length;
    expect(failed).toBeGreaterThan(430);
    expect(failed).toBeLessThan(570);
    expect(during.find(({ kind }) => kind === 'ok')).toEqual({ kind: 'ok', durationMs: 200 });
    expect(dependency.call(2_000, null)).toEqual({ kind: 'ok', durationMs: 50 });
  });

  it('has its mix of errors; a poison job always fails; a timeout takes as long as the caller waits', () => {
    const found = kinds(make({ errors: { bug: 0.1, invalid: 0.2 } }), 2_000, 1);
    expect((found.get('bug') ?? 0) / 2_000).toBeCloseTo(0.1, 1);
    expect((found.get('invalid') ?? 0) / 2_000).toBeCloseTo(0.2, 1);
    expect(make({ callTimeout: '3s' }).call(0, 'timeout')).toEqual({ kind: 'timeout', durationMs: 3_000 });
  });

  it.each<[string, DependencyOptions['serviceTime'], number, number]>([
    ['exponential', { kind: 'exponential', mean: 100 }, 69, 460],
    ['lognormal', { kind: 'lognormal', median: 50, p99: 500 }, 50, 500],
  ])('has service times that are %s', (_, serviceTime, median, p99) => {
    const dependency = make({ serviceTime });
    const sorted = Array.from({ length: 20_000 }, (__, at) => dependency.call(at, null).durationMs).sort(
      (a, b) => a - b,
    );
    expect((sorted[10_000] as number) / median).toBeCloseTo(1, 1);
    expect((sorted[19_800] as number) / p99).toBeCloseTo(1, 0);
    expect(Math.abs((sorted[19_800] as number) / p99 - 1)).toBeLessThan(0.1);
  });
});
