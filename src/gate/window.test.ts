import { describe, expect, test } from 'vitest';
import { jobs, report, T0 } from '../../test/gate/facts.ts';
import { measurePeak, noPeak, provenRate } from './rate.ts';
import { addReport, emptyWindow, figuresOf, isOneWorkerAlone, rateOf, recentRuns, type Window } from './window.ts';

function add(window: Window, at: number, facts: Parameters<typeof report>[0]): Window {
  return addReport(window, report(facts), T0 + at);
}

describe('the window', () => {
  test('forgets what is older than 30 s', () => {
    let window = add(emptyWindow, 0, { environment: 3 });
    window = add(window, 20_000, { environment: 4 });
    expect(figuresOf(window, T0 + 20_000).environment).toBe(7);
    expect(figuresOf(window, T0 + 35_000).environment).toBe(4);
    expect(figuresOf(window, T0 + 60_000).environment).toBe(0);
  });

  test('counts distinct jobs and workers over all its buckets', () => {
    let window = add(emptyWindow, 0, { environment: 2, jobs: jobs(2), worker: 7 });
    window = add(window, 6_000, { environment: 2, jobs: jobs(4), worker: 8 });
    window = add(window, 12_000, { alive: 1, worker: 9 });
    expect(figuresOf(window, T0 + 12_000)).toMatchObject({ distinctJobs: 4, failing: [7, 8], living: [9] });
  });

  test('spreads signs of life over the time in which they were gathered', () => {
    const window = add(emptyWindow, 10_000, { alive: 100, spanMs: 10_000 });
    expect(window.buckets.map(({ alive }) => alive)).toEqual([50, 50]);
  });

  test('drops buckets of the future, which come from a clock that has stepped back', () => {
    const window = add(add(emptyWindow, 600_000, { environment: 9 }), 0, { environment: 1 });
    expect(figuresOf(window, T0).environment).toBe(1);
  });

  test('knows how many runs there were in the last 5 to 10 minutes', () => {
    const minute = 60_000;
    const start = Math.ceil(T0 / (5 * minute)) * 5 * minute - T0;
    const window = add(add(emptyWindow, start, { alive: 7 }), start + 5 * minute, { environment: 2 });
    expect(recentRuns(window, T0 + start + 5 * minute)).toBe(9);
    expect(recentRuns(window, T0 + start + 10 * minute)).toBe(2);
    expect(recentRuns(window, T0 + start + 15 * minute)).toBe(0);
  });
});

describe('the streak', () => {
  test('grows over reports, and a sign of life ends it', () => {
    let window = add(emptyWindow, 0, { environment: 3 });
    window = add(window, 9_000, { environment: 2, worker: 2 });
    expect(window.streak).toMatchObject({ count: 5, since: T0, workers: [1, 2] });
    window = add(window, 10_000, { alive: 1 });
    expect(window.streak.count).toBe(0);
  });

  test('begins with the tail of a report that has both', () => {
    const window = add(add(emptyWindow, 0, { environment: 30 }), 1_000, { alive: 5, environment: 4, tail: 2 });
    expect(window.streak).toMatchObject({ count: 2, since: T0 + 1_000 });
  });

  test('is forgotten ten minutes after its last failure', () => {
    const window = add(emptyWindow, 0, { environment: 9 });
    expect(figuresOf(window, T0 + 599_999).streak).toBe(9);
    expect(figuresOf(window, T0 + 600_000).streak).toBe(0);
    expect(add(window, 600_000, { environment: 1 }).streak.count).toBe(1);
  });

  test('a 429 ends it too: the dependency has answered', () => {
    expect(add(add(emptyWindow, 0, { environment: 9 }), 1, { throttled: 1 }).streak.count).toBe(0);
  });
});

describe('one worker alone', () => {
  test.each([
    [[1], [2], true],
    [[1], [1, 2], true],
    [[1], [1], false],
    [[1], [], false],
    [[1, 2], [3], false],
    [[], [1, 2], false],
  ])('failing %j, living %j: %s', (failing, living, isAlone) => {
    expect(isOneWorkerAlone({ failing, living })).toBe(isAlone);
  });
});

describe('the peak', () => {
  const bucket = Math.ceil(T0 / 5_000) * 5_000 - T0;

  test('is the highest rate over 10 s, measured when all reports are in', () => {
    let window = emptyWindow;
    for (let i = 1; i <= 4; i++) window = add(window, bucket + i * 5_000, { alive: 300, spanMs: 5_000 });
    const now = T0 + bucket + 20_000;
    expect(rateOf(window, now, 1)).toBe(60);
    expect(measurePeak(noPeak, window, now)).toMatchObject({ rate: 60, at: now, parts: 1 });
    expect(measurePeak({ ...noPeak, rate: 70, at: now }, window, now).rate).toBe(70);
  });

  test('halves in a day, and never proves less than one a second', () => {
    const day = 86_400_000;
    const peak = { rate: 60, at: T0, parts: 3, lastPart: 0 };
    expect(provenRate(peak, T0 + day)).toBeCloseTo(30);
    expect(provenRate(peak, T0 + 100 * day)).toBe(1);
    expect(provenRate(noPeak, T0)).toBeNull();
  });

  test('is proven by three parts of the window with traffic: the first seconds look like little traffic', () => {
    let window = emptyWindow;
    let peak = noPeak;
    const proven: (number | null)[] = [];
    for (let i = 1; i <= 6; i++) {
      const now = T0 + bucket + i * 5_000;
      window = add(window, now - T0, { alive: 300, spanMs: 5_000 });
      for (let reports = 0; reports < 3; reports++) peak = measurePeak(peak, window, now);
      proven.push(provenRate(peak, now));
    }
    expect(proven.slice(0, 3)).toEqual([null, null, null]);
    expect(proven.at(-1)).toBeCloseTo(60);
  });
});
