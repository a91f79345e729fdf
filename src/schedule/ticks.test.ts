import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lastTicks, nextTick, nextTicks, ticksAfter } from './ticks.ts';
import type { Timing } from './timing.ts';

const time = (text: string): number => Date.parse(text);
const cron = (pattern: string, timezone = 'UTC'): Timing => ({ kind: 'cron', cron: pattern, timezone });
const iso = (ticks: readonly number[]): string[] => ticks.map((tick) => new Date(tick).toISOString().slice(0, 16));

function between(timing: Timing, from: number, to: number): number[] {
  const ticks: number[] = [];
  for (const tick of ticksAfter(timing, from - 1)) {
    if (tick >= to) break;
    ticks.push(tick);
  }
  return ticks;
}

describe('ticks', () => {
  it('of an interval are at its anchor and every so often before and after', () => {
    const timing: Timing = { kind: 'every', everyMs: 300_000, anchor: time('2026-01-01T00:02:00Z') };
    expect(iso(nextTicks(timing, time('2025-12-31T23:50:00Z'), 4))).toEqual([
      '2025-12-31T23:52',
      '2025-12-31T23:57',
      '2026-01-01T00:02',
      '2026-01-01T00:07',
    ]);
  });

  it('come after the time that is given, never at it', () => {
    expect(nextTick({ kind: 'every', everyMs: 1_000, anchor: 0 }, 5_000)).toBe(6_000);
    expect(nextTick(cron('* * * * * *'), 5_000)).toBe(6_000);
    expect(nextTick({ kind: 'at', at: 5_000 }, 5_000)).toBeNull();
    expect(nextTick({ kind: 'at', at: 5_000 }, 4_999)).toBe(5_000);
  });

  it('of a pattern that matches no day are none', () => {
    expect(nextTick(cron('0 0 30 2 *'), 0)).toBeNull();
  });

  it('of cron are at the wall time of its zone', () => {
    const ticks = nextTicks(cron('0 9 * * 1', 'Asia/Kolkata'), time('2026-06-01T00:00:00Z'), 2);
    expect(iso(ticks)).toEqual(['2026-06-01T03:30', '2026-06-08T03:30']);
  });

  it('the last ones are found among millions without going through all of them', () => {
    const upTo = time('2026-12-31T00:00:00Z');
    expect(iso(lastTicks(cron('* * * 1 *'), time('2000-01-01T00:00:00Z'), upTo, 2))).toEqual([
      '2026-01-31T23:58',
      '2026-01-31T23:59',
    ]);
    expect(lastTicks({ kind: 'every', everyMs: 1, anchor: -8.64e15 }, -8.64e15, upTo, 3)).toEqual([
      upTo - 2,
      upTo - 1,
      upTo,
    ]);
    // No library takes these.
    expect(lastTicks({ kind: 'every', everyMs: 1e-9, anchor: 0.5 }, 0, upTo, 3)).toEqual([]);
    expect(nextTick({ kind: 'every', everyMs: 1e308, anchor: 0 }, upTo)).toBeNull();
  });

  it.each([
    cron('*/20 * * * *', 'Europe/Berlin'),
    cron('30 2 * * *', 'America/New_York'),
    cron('0 0 * * *', 'America/Sao_Paulo'),
    cron('15,45 1-3 * * *', 'Australia/Lord_Howe'),
    { kind: 'every', everyMs: 61_000, anchor: 17 } as Timing,
  ])('the last ones of a span are the end of all of them: %j', (timing) => {
    const start = time('2018-10-01T00:00:00Z');
    const property = fc.property(
      fc.nat(40 * 86_400),
      fc.nat(6 * 86_400),
      fc.integer({ min: 1, max: 300 }),
      (a, b, most) => {
        const from = start + a * 1_000;
        const upTo = from + b * 1_000;
        const all = between(timing, from + 1, upTo + 1);
        expect(all).toEqual([...new Set(all)].sort((x, y) => x - y));
        expect(lastTicks(timing, from, upTo, most)).toEqual(all.slice(-most));
      },
    );
    fc.assert(property, { numRuns: 25 });
  });
});

describe('on a day of 23 hours (Berlin, 29 March 2026)', () => {
  const [from, to] = [time('2026-03-28T23:00:00Z'), time('2026-03-29T22:00:00Z')];

  it('02:30, which does not exist, ticks once, at 03:00', () => {
    expect(iso(between(cron('30 2 * * *', 'Europe/Berlin'), from, to))).toEqual(['2026-03-29T01:00']);
  });

  it('an hourly pattern ticks 23 times, an hour apart', () => {
    const ticks = between(cron('0 * * * *', 'Europe/Berlin'), from, to);
    expect(ticks).toEqual(Array.from({ length: 23 }, (_, hour) => from + hour * 3_600_000));
  });

  it('steps within the hour that does not exist are left out', () => {
    expect(between(cron('*/15 2 * * *', 'Europe/Berlin'), from, to)).toEqual([]);
  });
});

describe('on a day of 25 hours (Berlin, 25 October 2026)', () => {
  const [from, to] = [time('2026-10-24T22:00:00Z'), time('2026-10-25T23:00:00Z')];

  it('02:30, which comes twice, ticks once, at the first', () => {
    expect(iso(between(cron('30 2 * * *', 'Europe/Berlin'), from, to))).toEqual(['2026-10-25T00:30']);
  });

  it('an hourly pattern ticks 25 times, an hour apart', () => {
    const ticks = between(cron('0 * * * *', 'Europe/Berlin'), from, to);
    expect(ticks).toEqual(Array.from({ length: 25 }, (_, hour) => from + hour * 3_600_000));
  });

  it('steps within the hour that comes twice tick in both', () => {
    expect(between(cron('*/15 2 * * *', 'Europe/Berlin'), from, to)).toHaveLength(8);
  });
});
