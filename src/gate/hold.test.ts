import { describe, expect, test } from 'vitest';
import { Gate, T0 } from '../../test/gate/facts.ts';
import { admissibleAt } from './admit.ts';
import { holdUntil } from './hold.ts';
import { judgeFailure } from './refund.ts';
import { jobBit } from './sets.ts';

describe('how long a Retry-After holds', () => {
  test.each([
    ['5 s', 5_000, T0 + 5_000],
    ['a year: an hour at most', 365 * 86_400_000, T0 + 3_600_000],
    ['endless: an hour at most', Number.POSITIVE_INFINITY, T0 + 3_600_000],
    ['negative: not at all', -1, 0],
    ['no number: not at all', Number.NaN, 0],
    ['nothing', 0, 0],
  ])('%s', (_, retryAfterMs, until) => {
    expect(holdUntil(0, { retryAfterMs }, T0)).toBe(until);
  });

  test('the latest end counts', () => {
    expect(holdUntil(T0 + 9_000, { retryAfterMs: 5_000 }, T0)).toBe(T0 + 9_000);
  });
});

describe('a gate that is told Retry-After', () => {
  const served = (): Gate => new Gate().serve(60, 30);

  test('starts nothing until then, and resumes at 0.7 of the measured rate', () => {
    const gate = served().report({ throttled: 1, retryAfterMs: 5_000 });
    expect(gate.rules).toEqual(['held: retry-after']);
    expect(gate.admit()).toBe(0);
    expect(admissibleAt(gate.state, { pays: 'nothing' }, gate.now)).toBe(gate.now + 5_000);
    gate.wait(5_000);
    expect(gate.state.ramp?.limit).toBeCloseTo(0.7 * 60, 0);
    expect(gate.admit()).toBe(22);
  });

  test('does not trip, however often it is told', () => {
    const gate = served();
    for (let i = 0; i < 50; i++) gate.report({ throttled: 10, retryAfterMs: 1_000 });
    expect(gate.rules).toEqual(['held: retry-after']);
  });

  test('slows down without a header too', () => {
    const gate = served().report({ throttled: 1 });
    expect(gate.state.phase).toBe('ramp');
    expect(gate.admit()).toBe(22);
  });

  test('tells once that it is held, in every phase', () => {
    for (const gate of [new Gate().ramp(), new Gate().trip()]) {
      gate.events = [];
      gate.report({ throttled: 1, retryAfterMs: 5_000 }).wait(10).report({ throttled: 1, retryAfterMs: 5_000 });
      expect(gate.rules).toEqual(['held: retry-after']);
      gate.wait(5_000).report({ epoch: 1, retryAfterMs: 5_000 });
      expect(gate.rules.length).toBe(2);
    }
  });

  test('holds for a 503 that asks for it', () => {
    expect(served().report({ environment: 1, retryAfterMs: 5_000 }).admit()).toBe(0);
  });

  test('cuts the rate of a ramp once per step, to 0.7', () => {
    const gate = served().report({ throttled: 1 }).wait(4_000);
    gate.report({ throttled: 1, retryAfterMs: 1_000 }).report({ throttled: 1, retryAfterMs: 1_000 });
    expect(gate.state.ramp?.limit).toBeCloseTo(0.7 * 0.7 * 60, 0);
  });

  test('closes again when the rate has not been the limit for 10 s after the hold', () => {
    const gate = served().report({ throttled: 1, retryAfterMs: 60_000 }).wait(60_000);
    gate.admit({ due: 1 });
    expect(gate.state.phase).toBe('ramp');
    gate.wait(10_000).admit({ due: 1 });
    expect(gate.state.phase).toBe('closed');
  });

  test('obeys a run of an earlier epoch too, but does not cut the rate for it', () => {
    const gate = served().report({ throttled: 1 }).wait(4_000);
    const limit = gate.state.ramp?.limit;
    gate.report({ epoch: 1, throttled: 1, retryAfterMs: 7_000 });
    expect(gate.admit()).toBe(0);
    expect(gate.state.ramp?.limit).toBe(limit);
  });
});

describe('a job that is asked to wait again although others were answered', () => {
  const askers = jobBit('greedy');
  const asked = { throttled: 1, retryAfterMs: 60_000, askers };

  test('waits alone: the others are not held again', () => {
    const gate = new Gate().serve(60, 30).report(asked).wait(60_000);
    expect(gate.report({ alive: 5 }).report(asked).state.heldUntil).toBeLessThanOrEqual(gate.now);
    expect(gate.report({ throttled: 1, retryAfterMs: 5_000, askers: jobBit('another') }).state.heldUntil).toBe(
      gate.now + 5_000,
    );
  });

  test('holds them while no other was answered', () => {
    const gate = new Gate().serve(60, 30).report(asked).wait(60_000).report(asked);
    expect(gate.state.heldUntil).toBe(gate.now + 60_000);
  });

  test('pays for it from the fourth time on', () => {
    const gate = new Gate().serve(60, 30).report(asked).wait(60_000).report({ alive: 5 }).report(asked);
    const failure = { jobId: 'greedy', worker: 1, epoch: 0, isThrottled: true, isSuspect: false };
    const counts = (uncountedRuns: number) => judgeFailure(gate.state, { ...failure, uncountedRuns }, gate.now).counts;
    expect([0, 1, 2, 3].map(counts)).toEqual([false, false, false, true]);
  });
});
