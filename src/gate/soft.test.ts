import { describe, expect, test } from 'vitest';
import { jobs, report, steady, T0 } from '../../test/gate/facts.ts';
import type { GateReport } from './evidence.ts';
import { applySoftReport, isSoftForgettable, judgeSoftFailure, passSoftTime, type SoftFailure } from './soft.ts';
import { closedGate, type GateState } from './state.ts';

const hour = 3_600_000;
const day = 24 * hour;
let now = T0;
const told = (state: GateState, facts: Partial<GateReport>, waitMs = 0): GateState => {
  now += waitMs;
  return applySoftReport(state, report(facts), now, steady).state;
};
const fresh = (): GateState => {
  now = T0;
  return closedGate(T0);
};
const counts = (state: GateState, facts: Partial<SoftFailure> = {}): boolean => {
  return judgeSoftFailure(state, { deferredSince: null, isLastAttempt: false, ...facts }, now).counts;
};

describe('a soft gate', () => {
  test('judges an outage by the trip rules; then environment failures do not count', () => {
    const calm = told(fresh(), { environment: 9 });
    expect(counts(calm)).toBe(true);
    expect(counts(told(calm, { environment: 1 }))).toBe(false);
  });

  test('ends the outage with signs of life, once fewer than 30% of the window fail', () => {
    let state = told(fresh(), { environment: 10 });
    state = told(state, { alive: 20 }, 1_000);
    expect(state.phase).toBe('open');
    state = told(state, { alive: 10 }, 1_000);
    expect(state.phase).toBe('closed');
    expect(counts(state)).toBe(true);
  });

  test('ends the outage by time when the last that was heard is a sign of life and the failures are half a minute old', () => {
    const outage = told(fresh(), { environment: 10 });
    const phaseAfter = (state: GateState, ms: number) => passSoftTime(state, now + ms, steady).state.phase;
    // Nothing speaks for its end.
    expect(phaseAfter(outage, 60_000)).toBe('open');
    const failing = told(outage, { environment: 5 }, 1_000);
    expect(phaseAfter(failing, 60_000)).toBe('open');
    const answered = told(failing, { alive: 5 }, 1_000);
    expect([answered.phase, phaseAfter(answered, 10_000), phaseAfter(answered, 30_000)]).toEqual([
      ...['open', 'open', 'closed'],
    ]);
    // It was answered, and failed again.
    expect(phaseAfter(told(answered, { environment: 1 }, 1_000), 60_000)).toBe('open');
  });

  test('does not flutter where 60% of the calls fail for good', () => {
    let state = fresh();
    let changes = 0;
    for (let i = 0; i < 200; i++) {
      const { state: next, events } = applySoftReport(
        state,
        report({ alive: 4, environment: 6, tail: 0, jobs: jobs(6) }),
        T0 + i * 1_000,
        steady,
      );
      changes += events.length;
      state = next;
    }
    expect(changes).toBe(1);
  });

  test('counts again after a day of outage', () => {
    let state = told(fresh(), { environment: 10 });
    state = told(state, { environment: 1 }, day - 1);
    expect(counts(state)).toBe(false);
    expect(counts(told(state, { environment: 1 }, 1))).toBe(true);
  });
});

test('an outage that nothing was heard of for 24 h is over, and the next one is judged by itself', () => {
  const outage = told(fresh(), { environment: 10 });
  expect(told(outage, { environment: 1 }, day - 1).phase).toBe('open');
  const later = told(outage, { environment: 1 }, 1);
  expect([later.phase, later.downSince]).toEqual(['closed', 0]);
});

test('a row can go after a minute, that of an outage after 24 h', () => {
  const calm = told(fresh(), { alive: 1 });
  expect([59_999, 60_000].map((ms) => isSoftForgettable(calm, T0 + ms))).toEqual([false, true]);
  const outage = told(fresh(), { environment: 10 });
  expect([day - 1, day].map((ms) => isSoftForgettable(outage, T0 + ms))).toEqual([false, true]);
});

describe('a lone job behind a soft gate', () => {
  const alone = (): GateState =>
    [1, 2, 3, 4].reduce((state) => told(state, { environment: 1, jobs: [1, 0] }, 500), fresh());

  test('does not die by its last attempt while no sign of life speaks against an outage', () => {
    const state = alone();
    expect(counts(state)).toBe(true);
    expect(counts(state, { isLastAttempt: true })).toBe(false);
  });

  test('dies when others have shown signs of life', () => {
    const state = told(told(alone(), { alive: 1 }), { environment: 1, jobs: [1, 0] });
    expect(counts(state, { isLastAttempt: true })).toBe(true);
  });

  test('is in an outage once its streak has lasted', () => {
    expect(counts(told(alone(), { environment: 1, jobs: [1, 0] }, 10_000))).toBe(false);
  });

  test('is given its attempts back for an hour, in an outage or without a verdict', () => {
    const outage = told(alone(), { environment: 1, jobs: [1, 0] }, 10_000);
    for (const state of [alone(), outage]) {
      const at = (deferredSince: number) => counts(state, { deferredSince, isLastAttempt: true });
      expect([at(now - hour + 1), at(now - hour)]).toEqual([false, true]);
    }
  });

  test('is bounded by a maxOutage that is shorter', () => {
    const at = (deferredSince: number) => counts(alone(), { deferredSince, isLastAttempt: true, maxOutageMs: 60_000 });
    expect([at(now - 59_999), at(now - 60_000)]).toEqual([false, true]);
  });
});

test('what three jobs say is strong: it gives attempts back for maxOutage', () => {
  const after = (failing: number) => {
    const state = told(fresh(), { environment: 5, jobs: jobs(failing) });
    return counts(told(state, { environment: 5, jobs: jobs(failing) }, 10_000), { deferredSince: now - 2 * hour });
  };
  expect([1, 2, 3].map(after)).toEqual([true, true, false]);
});
