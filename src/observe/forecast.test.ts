import { describe, expect, it } from 'vitest';
import { MINUTE_MS } from '../duration.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { StoreForecast, UpcomingJobs } from '../store/store.ts';
import { readForecast, toForecast } from './forecast.ts';

const NOW = 1_000_000_000_000;

function upcoming(minute: number, count: number, changes: Partial<UpcomingJobs> = {}): UpcomingJobs {
  const job = { queue: 'default', lane: 'retry', resource: 'smtp', name: 'email.send' } as const;
  return { ...job, minute, count, isExact: true, expected: count, ...changes };
}

function read(due: number, changes: Partial<StoreForecast> = {}): StoreForecast {
  const counted = (count: number) => ({ count, isExact: true });
  const lane = { queue: 'default', lane: 'fresh', due: counted(due), later: counted(0), oldestDueAt: NOW } as const;
  const rates = { arrivedPerMinute: 0, endedPerMinute: 10 };
  const present = { queues: [], running: counted(3), ended: { completed: 1, dead: 2, cancelled: 3 } };
  return { now: NOW, isComplete: true, lanes: [lane], ...present, upcoming: [], ...rates, ...changes };
}

const emptyAfter = (minutes: number) => ({ outlook: 'draining', emptyAt: NOW + minutes * MINUTE_MS });

describe('when the backlog will be empty', () => {
  it('is now, when no due job waits', () => {
    expect(toForecast(read(0, { endedPerMinute: 0 }))).toMatchObject({ outlook: 'empty', emptyAt: NOW });
  });

  it('follows from the backlog and the rate at which jobs end', () => {
    expect(toForecast(read(25))).toMatchObject(emptyAfter(2.5));
    expect(toForecast(read(1_000))).toMatchObject(emptyAfter(100));
  });

  it('takes off the jobs that come meanwhile', () => {
    expect(toForecast(read(25, { arrivedPerMinute: 5 }))).toMatchObject(emptyAfter(5));
    expect(toForecast(read(25, { arrivedPerMinute: 10 }))).toMatchObject({ outlook: 'growing', emptyAt: null });
  });

  it('adds what falls due meanwhile, for its first run too, but nothing that falls due later', () => {
    const soon = [upcoming(0, 5), upcoming(1, 5, { lane: 'fresh' }), upcoming(30, 500)];
    expect(toForecast(read(15, { upcoming: soon }))).toMatchObject(emptyAfter(2.5));
  });

  it('is unknown while no job ends', () => {
    expect(toForecast(read(1, { endedPerMinute: 0 }))).toMatchObject({ outlook: 'stalled', emptyAt: null });
  });
});

it('lists retries by minute, and by resource and name, the largest first', () => {
  const { retries, series } = toForecast(
    read(0, {
      upcoming: [
        upcoming(0, 2),
        upcoming(0, 3, { name: 'sms.send', isExact: false, expected: 30 }),
        upcoming(59, 4, { queue: 'other', lane: 'suspect' }),
        upcoming(1, 9, { lane: 'fresh' }),
      ],
    }),
  );
  expect(retries).toHaveLength(60);
  expect(retries[0]).toEqual({ at: NOW, count: 5, isExact: false, expected: 32 });
  expect(retries[1]).toMatchObject({ at: NOW + MINUTE_MS, count: 0 });
  expect(retries[59]).toMatchObject({ count: 4, isExact: true });
  expect(series.map(({ name, total }) => [name, total.count, total.isExact])).toEqual([
    ['sms.send', 3, false],
    ['email.send', 6, true],
  ]);
  expect(series[1]?.minutes).toEqual([2, ...new Array(58).fill(0), 4]);
});

it('refuses options that it does not know', async () => {
  const store = new MemoryStore();
  await expect(readForecast(store, { qeue: 'a' } as never)).rejects.toThrow('Did you mean queue');
  await expect(readForecast(store, { queue: 7 as never })).rejects.toThrow('forecast: queue');
});
