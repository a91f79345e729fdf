import { describe, expect, it } from 'vitest';
import { ConfigError } from '../errors.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { ErrorHistoryRequest, Store } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { type ErrorHistoryOptions, readErrorHistory } from './error-history.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOW = 20_000 * 24 * HOUR + 90 * MINUTE;

const read = (options: ErrorHistoryOptions, store: Store = new MemoryStore({ clock: new VirtualClock() })) =>
  readErrorHistory(store, options, NOW);

describe('the step of a range', () => {
  it.each([
    [{}, 30 * MINUTE, 48],
    [{ from: '10m' }, 5 * MINUTE, 2],
    [{ from: '1h' }, 5 * MINUTE, 12],
    [{ from: '7d' }, 3 * HOUR, 56],
    [{ from: '30d' }, 12 * HOUR, 60],
    [{ from: '24h', step: '1h' }, HOUR, 24],
  ] as const)('of %o is chosen so that a small chart can show it', async (options, stepMs, steps) => {
    const { from, to, ...answer } = await read(options);
    expect(answer.stepMs).toBe(stepMs);
    expect([from % stepMs, to % stepMs]).toEqual([0, 0]);
    expect(Math.abs((to - from) / stepMs - steps)).toBeLessThanOrEqual(1);
  });

  it.each<[ErrorHistoryOptions, RegExp]>([
    [{ step: '1m' }, /errors\.history: step: expected a whole number of 5 minutes, got "1m"/],
    [{ from: '7d', step: '30m' }, /whole hours, for a range that begins more than 2 days ago/],
    [{ from: '24h', step: '5m' }, /200 steps at most, so at least 10m for this range/],
    [{ error: '' }, /errors\.history: error/],
    [{ queue: '' }, /errors\.history: queue/],
    [{ fingerprint: 'e1' } as never, /errors\.history: there is no option "fingerprint"/],
  ])('%o is refused', async (options, message) => {
    await expect(read(options)).rejects.toThrow(message);
    await expect(read(options)).rejects.toThrow(ConfigError);
  });
});

it('every step of a series has its figures, those without a failure 0', async () => {
  const asked: ErrorHistoryRequest[] = [];
  const of = { fingerprint: 'e1', queue: 'default', name: 'send' };
  const store = {
    errorHistory: async (request: ErrorHistoryRequest) => {
      asked.push(request);
      const points = [{ at: request.from + 10 * MINUTE, failures: 3, dead: 1 }];
      return { now: NOW, upTo: NOW - 1, series: [{ ...of, points }] };
    },
  } as Partial<Store> as Store;
  const options = { error: 'e1', name: 'send', queue: 'default', from: '20m', step: '5m' } as const;
  const { series, ...range } = await read(options, store);
  const { from, to } = range;
  expect(range).toEqual({ from: NOW - 20 * MINUTE, to: NOW, stepMs: 5 * MINUTE, now: NOW, upTo: NOW - 1 });
  expect(series).toEqual([{ ...of, failures: [0, 0, 3, 0], dead: [0, 0, 1, 0] }]);
  expect(asked).toEqual([{ from, to, stepMs: 5 * MINUTE, fingerprint: 'e1', name: 'send', queue: 'default' }]);
});
