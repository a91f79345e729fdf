import { describe, expect, test } from 'vitest';
import { Gate, jobsOf } from '../../test/gate/facts.ts';
import { pin } from './operate.ts';
import { judgeFailure, refund, type SettledFailure, spend, verdictAt } from './refund.ts';

const verdict = (gate: Gate, facts: Partial<SettledFailure> = {}): boolean =>
  judgeFailure(
    gate.state,
    {
      jobId: 'a',
      worker: 1,
      epoch: gate.state.epoch,
      isThrottled: false,
      uncountedRuns: 0,
      isSuspect: false,
      ...facts,
    },
    gate.now,
  ).counts;

describe('an environment failure', () => {
  test('counts while the gate is closed', () => {
    expect(verdict(new Gate())).toBe(true);
  });

  test('does not count when its own report has opened the gate, nor in the ramp', () => {
    expect(verdict(new Gate().trip())).toBe(false);
    expect(verdict(new Gate().ramp())).toBe(false);
  });

  test('counts again in a ramp that has been healthy for five minutes', () => {
    expect(verdict(new Gate().ramp().wait(299_999))).toBe(false);
    expect(verdict(new Gate().ramp().wait(300_000))).toBe(true);
  });

  test('counts in an open gate when other probes are alive and the job has failed before', () => {
    const gate = new Gate().trip().report({ environment: 1, jobs: jobsOf('a') });
    expect(verdict(gate)).toBe(false);
    gate.report({ alive: 1 });
    expect(verdict(gate)).toBe(true);
    expect(verdict(gate, { epoch: 0 })).toBe(false);
    expect(verdict(gate, { jobId: 'b' })).toBe(false);
  });

  test('does not count on a suspect worker', () => {
    const gate = new Gate().report({ alive: 5, worker: 2 }).report({ environment: 10, worker: 1 });
    expect(verdict(gate)).toBe(false);
    expect(verdict(gate, { worker: 2 })).toBe(true);
  });

  test('does not count when it was throttled', () => {
    expect(verdict(new Gate(), { isThrottled: true })).toBe(false);
  });

  test('leaves it to the gate when the job runs again: at once, or after a step of the ramp', () => {
    const waitOf = (gate: Gate, facts: Partial<SettledFailure> = {}): unknown =>
      judgeFailure(
        gate.state,
        {
          jobId: 'a',
          worker: 1,
          epoch: gate.state.epoch,
          isThrottled: false,
          uncountedRuns: 0,
          isSuspect: false,
          ...facts,
        },
        gate.now,
      ).longestWaitMs;
    expect(waitOf(new Gate().trip())).toBe(0);
    expect(waitOf(new Gate().ramp())).toBe(2_000);
    expect(waitOf(new Gate(), { isThrottled: true })).toBe(20_000);
    expect(waitOf(new Gate().trip(), { isSuspect: true })).toBe(20_000);
    expect(waitOf(new Gate())).toBeUndefined();
  });

  test('follows an operator’s pin', () => {
    const pinned = (to: 'open' | 'closed'): Gate =>
      new Gate(pin(new Gate().trip().state, to, 'anna', new Gate().now, () => 0.5).state);
    expect(verdict(pinned('open'))).toBe(false);
    expect(verdict(pinned('closed'))).toBe(true);
    expect(verdict(pinned('closed'), { isThrottled: true })).toBe(true);
  });
});

describe('attempts that were spent before the gate tripped', () => {
  test('are given back when the trip covers them, and only once', () => {
    const gate = new Gate();
    const spent = spend(spend(null, gate.now), gate.wait(1_000).now);
    expect(spent.count).toBe(2);
    expect(refund(gate.state, spent)).toEqual({ attempts: 0, spent });
    gate.wait(1_000).trip();
    const refunded = refund(gate.state, spent);
    expect(refunded).toEqual({ attempts: 2, spent: null });
    expect(refund(gate.state, refunded.spent)).toEqual({ attempts: 0, spent: null });
  });

  test('are not when they were spent before the window', () => {
    const gate = new Gate();
    const spent = spend(null, gate.now);
    gate.wait(30_001).trip();
    expect(refund(gate.state, spent).attempts).toBe(0);
  });

  test('are when a slow streak reaches further back than the window', () => {
    const gate = new Gate();
    const spent = spend(null, gate.now);
    for (let i = 0; i < 5; i++) gate.report({ environment: 1, jobs: [1 << i, 0] }).wait(60_000);
    expect(gate.state.phase).toBe('open');
    expect(refund(gate.state, spent).attempts).toBe(1);
  });

  test('are judged apart when they lie further apart than a window', () => {
    expect(spend(spend(null, 0), 30_001)).toEqual({ at: 30_001, count: 1 });
  });

  test('are given back after the gate has closed and tripped again', () => {
    const gate = new Gate();
    const spent = spend(null, gate.now);
    for (let i = 0; i < 5; i++) {
      gate.ramp().wait(20_000).admit({ due: 0 });
      expect(gate.state.phase).toBe('closed');
      gate.wait(100_000);
    }
    expect(refund(gate.state, spent).attempts).toBe(1);
    expect(gate.state.covered.length).toBe(5);
  });

  test('are remembered for the last eight outages that do not touch', () => {
    const gate = new Gate();
    for (let i = 0; i < 12; i++) {
      gate.ramp().wait(20_000).admit({ due: 0 });
      gate.wait(100_000);
    }
    expect(gate.state.covered.length).toBe(8);
  });

  test('of a gate that flaps are remembered as one outage', () => {
    const gate = new Gate();
    for (let i = 0; i < 5; i++) gate.ramp().report({ environment: 10 });
    expect(gate.state.covered.length).toBe(1);
  });
});

test('a last attempt waits one window for the verdict', () => {
  expect(verdictAt(5)).toBe(30_005);
});
