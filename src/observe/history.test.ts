import { describe, expect, it } from 'vitest';
import { ConfigError } from '../errors.ts';
import { noCounts, runTimeBounds } from '../store/history.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { HistoryCounts, Store } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { type HistoryOptions, MOST_POINTS, quantile, readHistory } from './history.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NOW = 20_000 * DAY + 90 * MINUTE;

const read = (options: HistoryOptions, store: Store = new MemoryStore({ clock: new VirtualClock() })) =>
  readHistory(store, options, NOW);

describe('the step of a range', () => {
  it.each([
    ['5m', MINUTE, 6],
    ['1h', MINUTE, 60],
    ['6h', 2 * MINUTE, 180],
    ['24h', 5 * MINUTE, 288],
    ['2d', 10 * MINUTE, 288],
    ['7d', HOUR, 169],
    ['30d', 180 * MINUTE, 241],
    ['90d', 720 * MINUTE, 181],
  ] as const)('of the last %s is chosen so that a chart can show it', async (from, stepMs, points) => {
    const answer = await read({ from });
    expect(answer.stepMs).toBe(stepMs);
    expect(Math.abs(answer.points.length - points)).toBeLessThanOrEqual(1);
    expect(answer.from % stepMs).toBe(0);
    expect(answer.from).toBeLessThanOrEqual(NOW - 5 * MINUTE);
    expect(answer.to).toBeGreaterThanOrEqual(NOW);
  });

  it.each<[HistoryOptions, RegExp]>([
    [{ step: '90s' }, /history: step: expected whole minutes, got "90s"/],
    [{ step: 0 }, /whole minutes/],
    [{ from: '7d', step: '30m' }, /whole hours, for a range that begins more than 2 days ago/],
    [{ from: '2d', step: '1m' }, /500 steps at most, so at least 6m for this range/],
    [{ from: '1h', to: '2h' }, /history: from: expected a time before `to`/],
    [{ from: 'yesterday' as never }, /history: from/],
    [{ name: '' }, /history: name/],
    [{ form: '1h' } as never, /Did you mean from\?/],
  ])('%o is refused', async (options, message) => {
    await expect(read(options)).rejects.toThrow(message);
    await expect(read(options)).rejects.toThrow(ConfigError);
  });

  it('is never so short that the answer has too many', async () => {
    for (const days of [3, 365, 20_000]) {
      const { points } = await read({ from: new Date(NOW - days * DAY) });
      expect(points.length).toBeLessThanOrEqual(MOST_POINTS);
    }
  });
});

function counts(changes: Partial<HistoryCounts>): HistoryCounts {
  return { ...noCounts(), ...changes };
}

/** Fifty runs below 1 ms and fifty between 50 and 100. */
const half = noCounts().runTimes.map((_, bin) => (bin === 0 || runTimeBounds[bin] === 100 ? 50 : 0));

it('steps without runs are zero, and names beyond those that are kept are the others', async () => {
  const at = NOW - (NOW % MINUTE) - 10 * MINUTE;
  const whole = counts({ runs: 100, completed: 90, failed: 10, retries: 5, dead: 1, runMs: 4_000, runTimes: half });
  const named = counts({
    runs: 60,
    completed: 60,
    runMs: 60,
    runTimes: half.map((runs, bin) => (bin === 0 ? runs : 0)),
  });
  const store = {
    history: async () => ({
      now: NOW,
      upTo: NOW - 1_000,
      points: [{ at, ...whole }],
      names: [{ name: 'a', ...named }],
    }),
  } as unknown as Store;
  const answer = await read({}, store);
  const busy = answer.points.filter(({ runs }) => runs > 0);
  expect(busy).toEqual([
    { at, runs: 100, completed: 90, failed: 10, retries: 5, dead: 1, runMs: 4_000, p50Ms: 1, p95Ms: 95 },
  ]);
  expect(answer.points).toHaveLength(60);
  expect(answer.points[0]).toMatchObject({ runs: 0, p50Ms: null, p95Ms: null });
  expect(answer.total).toMatchObject({ runs: 100, failed: 10 });
  expect(answer.names).toMatchObject([{ name: 'a', runs: 60, p95Ms: 1 }]);
  expect(answer.others).toMatchObject({ runs: 40, completed: 30, failed: 10, dead: 1, runMs: 3_940, p50Ms: 75 });
});

describe('a quantile', () => {
  it('of nothing is null', () => {
    expect(quantile(noCounts().runTimes, 0.5)).toBeNull();
  });

  it('lies in the bin of its run', () => {
    expect(quantile(half, 0.5)).toBe(1);
    expect(quantile(half, 0.25)).toBe(0.5);
    expect(quantile(half, 0.75)).toBe(75);
  });

  it('of runs beyond the last bound is that bound', () => {
    const long = noCounts().runTimes.map((_, bin) => (bin === runTimeBounds.length ? 3 : 0));
    expect(quantile(long, 0.95)).toBe(3_600_000);
  });
});
