import { describe, expect, test } from 'vitest';
import { Gate, T0 } from '../../test/gate/facts.ts';
import { isForgettable } from './gate.ts';
import { pin } from './operate.ts';
import { closedGate } from './state.ts';

describe('a report on runs of an earlier epoch', () => {
  test('does not trip a gate that has closed since', () => {
    const gate = new Gate().ramp().wait(20_000);
    gate.admit({ due: 0 });
    expect(gate.state.phase).toBe('closed');
    gate.wait(1_000).report({ environment: 100, claimedFrom: gate.state.epoch - 1 });
    expect(gate.state.phase).toBe('closed');
    expect(gate.state.window.streak.count).toBe(0);
    gate.report({ environment: 100, claimedFrom: gate.state.epoch });
    expect(gate.state.phase).toBe('open');
  });

  test('is no probe', () => {
    const gate = new Gate().trip();
    const { probes } = gate.state;
    gate.report({ epoch: 0, alive: 3 }).report({ epoch: 0, environment: 1 });
    expect(gate.state.probes).toEqual(probes);
    expect(gate.state.phase).toBe('open');
  });

  test('does not move a ramp', () => {
    const gate = new Gate().serve(60, 30).ramp();
    gate.report({ epoch: 0, environment: 100 }).report({ epoch: 7, alive: 100 });
    expect(gate.state.ramp).toMatchObject({ alive: 0, environment: 0 });
    expect(gate.state.phase).toBe('ramp');
  });
});

describe('an epoch', () => {
  test('rises with every transition, also within one millisecond', () => {
    const gate = new Gate();
    const epochs = [gate.state.epoch, gate.trip().state.epoch];
    for (let i = 0; i < 3; i++) gate.report({ alive: 1 });
    epochs.push(gate.state.epoch, gate.report({ environment: 9 }).state.epoch);
    expect(epochs).toEqual([T0, T0 + 1, T0 + 2, T0 + 3]);
  });

  test('is the store time of its transition', () => {
    const gate = new Gate().wait(5_000).trip();
    expect(gate.state.epoch).toBe(gate.now);
  });

  test('of a new row lies above that of a row that was deleted', () => {
    expect(closedGate(T0 + 60_000).epoch).toBeGreaterThan(new Gate().trip().state.epoch);
  });
});

test('a gate that has just closed still knows which workers saw signs of life', () => {
  const gate = new Gate().report({ environment: 5, worker: 1 }).report({ environment: 5, worker: 2 }).wait(2_000);
  for (let probe = 0; probe < 3; probe++) gate.report({ alive: 1, worker: 2 });
  gate.wait(10_000).admit({ due: 0 });
  expect(gate.state.phase).toBe('closed');
  expect(gate.report({ environment: 100, worker: 1 }).state.phase).toBe('closed');
});

describe('the history', () => {
  test('tells what changed, by which rule, and the figures of that moment', () => {
    const gate = new Gate().serve(60, 30).report({ environment: 6, worker: 1 }).report({ environment: 4, worker: 2 });
    expect(gate.events).toMatchObject([
      {
        at: gate.now,
        change: 'opened',
        from: 'closed',
        to: 'open',
        rule: 'fast',
        epoch: gate.state.epoch,
        figures: { environment: 10, distinctJobs: 6, failingWorkers: 2, workers: 2, streak: 10, limit: null },
      },
    ]);
    expect(gate.events[0]?.figures.peak).toBe(60);
  });
});

describe('the healthy path', () => {
  test('writes nothing at a claim behind a closed gate', () => {
    const gate = new Gate().serve(60, 30);
    const { state } = gate;
    expect(gate.admit({ due: 50 })).toBe(50);
    expect(gate.state).toBe(state);
  });
});

describe('a row', () => {
  test('can go when the gate is closed, quiet for a minute and nothing waits behind it', () => {
    const gate = new Gate().report({ alive: 1 });
    expect(isForgettable(gate.state, false, gate.now + 59_999)).toBe(false);
    expect(isForgettable(gate.state, false, gate.now + 60_000)).toBe(true);
    expect(isForgettable(gate.state, true, gate.now + 60_000)).toBe(false);
  });

  test('stays a day for a peak that is worth remembering', () => {
    const gate = new Gate().serve(60, 30);
    expect(isForgettable(gate.state, false, gate.now + 86_399_999)).toBe(false);
    expect(isForgettable(gate.state, false, gate.now + 86_400_000)).toBe(true);
  });

  test('stays while the gate is open, in its ramp, or pinned', () => {
    const later = T0 + 10 * 86_400_000;
    for (const gate of [new Gate().trip(), new Gate().ramp()])
      expect(isForgettable(gate.state, false, later)).toBe(false);
    expect(isForgettable(pin(closedGate(T0), 'closed', 'anna', T0, () => 0).state, false, later)).toBe(false);
  });
});
