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
    const gate = served().report({ throttled: 5, retryAfterMs: 5_000 });
    expect(gate.rules).toEqual(['held: retry-after']);
    expect(gate.admit()).toBe(0);
    expect(admissibleAt(gate.state, { pays: 'nothing' }, gate.now)).toBe(gate.now + 5_000);
    gate.wait(5_000);
    expect(gate.state.ramp?.limit).toBeCloseTo(0.7 * 60, 0);
    expect(gate.admit()).toBe(22);
  });

  test('does not trip, however often it is told', () => {
    const gate = served();
    for (let i = 0; i < 50; i++) gate.report({ throttled: 50, retryAfterMs: 1_000 });
    expect(gate.rules).toEqual(['held: retry-after']);
  });

  test('slows down without a header too', () => {
    const gate = served().report({ throttled: 5 });
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
    expect(served().report({ environment: 5, retryAfterMs: 5_000 }).admit()).toBe(0);
  });

  test('cuts the rate of a ramp once per step, to 0.7', () => {
    const gate = served().report({ throttled: 5 }).wait(4_000);
    gate.report({ throttled: 5, retryAfterMs: 1_000 }).report({ throttled: 5, retryAfterMs: 1_000 });
    expect(gate.state.ramp?.limit).toBeCloseTo(0.7 * 0.7 * 60, 0);
  });

  test('closes again when the rate has not been the limit for 10 s after the hold', () => {
    const gate = served().report({ throttled: 5, retryAfterMs: 60_000 }).wait(60_000);
    gate.admit({ due: 1 });
    expect(gate.state.phase).toBe('ramp');
    gate.wait(10_000).admit({ due: 1 });
    expect(gate.state.phase).toBe('closed');
  });

  test('obeys a run of an earlier epoch too, but does not cut the rate for it', () => {
    const gate = served().report({ throttled: 5 }).wait(4_000);
    const limit = gate.state.ramp?.limit;
    gate.report({ epoch: 1, throttled: 5, retryAfterMs: 7_000 });
    expect(gate.admit()).toBe(0);
    expect(gate.state.ramp?.limit).toBe(limit);
  });
});

describe('a job that is asked to wait again although others were answered', () => {
  const askers = jobBit('greedy');
  const asked = { throttled: 5, retryAfterMs: 60_000, askers };

  test('waits alone: the others are not held again', () => {
    const gate = new Gate().serve(60, 30).report(asked).wait(60_000);
    expect(gate.report({ alive: 5 }).report(asked).state.heldUntil).toBeLessThanOrEqual(gate.now);
    expect(gate.report({ throttled: 5, retryAfterMs: 5_000, askers: jobBit('another') }).state.heldUntil).toBe(
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

describe('while others are answered, a job that is asked to wait', () => {
  const asked = (jobId: string) => ({ throttled: 1, retryAfterMs: 5_000, askers: jobBit(jobId) });
  const isHeld = (gate: Gate): boolean => gate.state.heldUntil > gate.now;

  test('waits alone when it is one of few, whoever it is', () => {
    const gate = new Gate().serve(60, 30);
    for (let i = 0; i < 100; i++)
      gate
        .wait(1_000)
        .report({ alive: 60, spanMs: 1_000 })
        .report(asked(`job ${i}`));
    expect(gate.rules).toEqual([]);
    expect(gate.state.phase).toBe('closed');
  });

  test('and without a header as well: the rate is not cut', () => {
    expect(new Gate().serve(60, 30).report({ throttled: 1, askers: jobBit('one') }).state.phase).toBe('closed');
  });

  test('holds them when a tenth of the window asks', () => {
    const shareOf = (answered: number): boolean =>
      isHeld(new Gate().report({ alive: answered, throttled: 1, retryAfterMs: 5_000, askers: jobBit('one') }));
    expect([0, 8, 9, 10].map(shareOf)).toEqual([true, true, true, false]);
  });

  test('holds them when it is the fifth in a row that was not answered', () => {
    const gate = new Gate().serve(60, 30);
    const held = [1, 2, 3, 4, 5].map((i) => isHeld(gate.wait(10).report(asked(`job ${i}`))));
    expect(held).toEqual([false, false, false, false, true]);
  });

  test('holds them at once as the probe of an open gate', () => {
    const gate = new Gate().serve(60, 30).trip().wait(2_000);
    gate.admit();
    expect(isHeld(gate.report({ ...asked('probe'), alive: 0 }))).toBe(true);
  });

  test('pays for it from the fourth time on', () => {
    const { state, now } = new Gate().serve(60, 30).report(asked('greedy'));
    const failure = { jobId: 'greedy', worker: 1, epoch: 0, isThrottled: true, isSuspect: false };
    const counts = (uncountedRuns: number) => judgeFailure(state, { ...failure, uncountedRuns }, now).counts;
    expect([0, 1, 2, 3].map(counts)).toEqual([false, false, false, true]);
  });
});
