import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DueSchedule, MISSED_AFTER_MS, MOST_AT_ONCE, misfirePolicies, planTicks } from './plan.ts';

const SECOND = 1_000;
const MINUTE = 60_000;

function every(everyMs: number, changes: Partial<DueSchedule> = {}): DueSchedule {
  const timing = { kind: 'every', everyMs, anchor: 0 } as const;
  return { timing, misfire: 'once', misfireLimit: 100, nextAt: everyMs, ...changes };
}

describe('a plan', () => {
  it('fires nothing before the next tick', () => {
    expect(planTicks(every(MINUTE), MINUTE - 1)).toEqual({ ticks: [], nextAt: MINUTE, isLate: false });
  });

  it('fires a tick that is due, and goes on with the next', () => {
    expect(planTicks(every(MINUTE), MINUTE)).toEqual({ ticks: [MINUTE], nextAt: 2 * MINUTE, isLate: false });
  });

  it('fires every tick that is less than a minute late, whatever the misfire policy', () => {
    for (const misfire of misfirePolicies) {
      const { ticks, nextAt, isLate } = planTicks(every(SECOND, { misfire }), MINUTE + SECOND);
      expect(ticks).toEqual(Array.from({ length: 61 }, (_, n) => (n + 1) * SECOND));
      expect([nextAt, isLate]).toEqual([62 * SECOND, false]);
    }
  });

  it('fires a one-off once', () => {
    const timing = { kind: 'at', at: 5 } as const;
    expect(planTicks(every(1, { timing, nextAt: 5 }), 7)).toEqual({ ticks: [5], nextAt: null, isLate: false });
  });

  it('fires the stored tick also when the rules of its time zone have changed since', () => {
    const timing = { kind: 'cron', cron: '0 * * * *', timezone: 'UTC' } as const;
    const { ticks, nextAt } = planTicks(every(1, { timing, nextAt: 30 * MINUTE }), 30 * MINUTE);
    expect([ticks, nextAt]).toEqual([[30 * MINUTE], 60 * MINUTE]);
  });
});

describe('of missed ticks', () => {
  const now = 10 * MINUTE;

  it('skip fires none, but those of the last minute', () => {
    expect(planTicks(every(MINUTE, { misfire: 'skip' }), now + 1)).toEqual({
      ticks: [10 * MINUTE],
      nextAt: 11 * MINUTE,
      isLate: true,
    });
    expect(planTicks(every(7 * MINUTE, { misfire: 'skip' }), now).ticks).toEqual([]);
  });

  it('once fires the last', () => {
    expect(planTicks(every(MINUTE), now).ticks).toEqual([10 * MINUTE]);
    expect(planTicks(every(7 * MINUTE), now).ticks).toEqual([7 * MINUTE]);
  });

  it('all fires no more than the largest limit that there is, whatever is stored', () => {
    const timing = { kind: 'every', everyMs: 1, anchor: 0 } as const;
    const stored = { timing, misfire: 'all', misfireLimit: 2 ** 31 - 1, nextAt: -8.64e15 } as const;
    const { ticks, nextAt } = planTicks(stored, 1e12);
    expect([ticks.length, ticks[0], nextAt]).toEqual([100, 1e12 - 9_999, 1e12 - 9_899]);
    expect(planTicks({ ...stored, misfireLimit: 0 }, 1e12).ticks).toEqual([]);
  });

  it('all fires each, and no more than its limit, of the last', () => {
    expect(planTicks(every(MINUTE, { misfire: 'all' }), now).ticks).toHaveLength(10);
    const limited = planTicks(every(MINUTE, { misfire: 'all', misfireLimit: 3 }), now);
    expect(limited.ticks).toEqual([8, 9, 10].map((minute) => minute * MINUTE));
  });

  it('all fires many in parts, and leaves none out between them', () => {
    const fired: number[] = [];
    let nextAt: number | null = SECOND;
    for (let parts = 0; nextAt !== null && nextAt <= now; parts++) {
      const plan = planTicks(every(SECOND, { misfire: 'all', misfireLimit: 10_000, nextAt }), now);
      expect(plan.ticks.length).toBeLessThanOrEqual(MOST_AT_ONCE);
      expect(parts).toBeLessThan(7);
      fired.push(...plan.ticks);
      nextAt = plan.nextAt;
    }
    expect(fired).toEqual(Array.from({ length: 600 }, (_, n) => (n + 1) * SECOND));
  });

  it('after an outage of ten years, the last are found without counting them all', () => {
    const timing = { kind: 'cron', cron: '* * * * * *', timezone: 'UTC' } as const;
    const later = 10 * 365 * 86_400_000;
    const { ticks, nextAt } = planTicks(every(1, { timing, misfire: 'all', nextAt: SECOND }), later);
    expect(ticks).toHaveLength(100);
    expect(nextAt).toBe(later + SECOND);
  });
});

describe('with any clock, one that steps back included,', () => {
  it('no tick is fired twice, and none is left out that was not missed', () => {
    const steps = fc.array(fc.integer({ min: -5 * MINUTE, max: 5 * MINUTE }), { minLength: 1, maxLength: 40 });
    const property = fc.property(
      steps,
      fc.constantFrom(...misfirePolicies),
      fc.integer({ min: 1, max: 90 }),
      (moves, misfire, seconds) => {
        const everyMs = seconds * SECOND;
        const fired: number[] = [];
        let nextAt: number | null = everyMs;
        let now = 0;
        for (const move of moves) {
          now += move;
          const before: number = nextAt as number;
          const plan = planTicks(every(everyMs, { misfire, misfireLimit: 10_000, nextAt: before }), now);
          const expected = ticksIn(before, now, everyMs);
          if (misfire === 'all' || before >= now - MISSED_AFTER_MS) {
            expect(plan.ticks).toEqual(expected.slice(0, MOST_AT_ONCE));
          } else if (misfire === 'once') expect(plan.ticks).toEqual(expected.slice(-1));
          fired.push(...plan.ticks);
          nextAt = plan.nextAt;
        }
        expect(fired).toEqual([...new Set(fired)].sort((a, b) => a - b));
      },
    );
    fc.assert(property);
  });
});

function ticksIn(from: number, to: number, everyMs: number): number[] {
  const ticks: number[] = [];
  for (let tick = from; tick <= to; tick += everyMs) ticks.push(tick);
  return ticks;
}
