import { describe, expect, test } from 'vitest';
import { Gate, T0 } from '../../test/gate/facts.ts';
import { closedGate, formatGate, parseGate } from './state.ts';

const states = {
  closed: new Gate().report({ alive: 3, environment: 2 }),
  open: new Gate().trip(),
  ramp: new Gate().serve(60, 30).ramp(),
};

describe('a stored state', () => {
  test.each(Object.entries(states))('of a gate that is %s comes back as it was', (_, { state }) => {
    const text = formatGate(state);
    expect(formatGate(parseGate(text, T0))).toBe(text);
    expect(parseGate(text, T0).phase).toBe(state.phase);
  });

  test('of a gate whose retries have cost more than was saved keeps its debt', () => {
    const state = { ...closedGate(T0), budget: { tokens: -3.5, at: T0 } };
    expect(parseGate(formatGate(state), T0).budget).toEqual(state.budget);
  });

  const valid = JSON.parse(formatGate(states.ramp.state));
  test.each<[string, string]>([
    ['no JSON', '{'],
    ['null', 'null'],
    ['a list', '[]'],
    ['an unknown phase', JSON.stringify({ ...valid, ramp: null, phase: 'ajar' })],
    ['a missing part', JSON.stringify({ ...valid, probes: undefined })],
    ['a part that does not belong', JSON.stringify({ ...valid, extra: 1 })],
    ['text for a number', JSON.stringify({ ...valid, epoch: '1' })],
    ['a negative number', JSON.stringify({ ...valid, heldUntil: -1 })],
    ['a number beyond all times', JSON.stringify({ ...valid, heldUntil: 1e300 })],
    ['a list for an object', JSON.stringify({ ...valid, budget: [0, 0] })],
    ['an object for a list', JSON.stringify({ ...valid, probes: { ...valid.probes, failed: { 0: 0, 1: 0 } } })],
    ['a list that is far too long', JSON.stringify({ ...valid, covered: Array(1_000).fill([0, 0]) })],
    ['a ramp without its figures', JSON.stringify({ ...valid, ramp: null })],
    ['figures of a ramp without a ramp', JSON.stringify({ ...valid, phase: 'closed' })],
  ])('with %s is a closed gate', (_, text) => {
    expect(parseGate(text, T0, { keyed: true })).toEqual(closedGate(T0, { keyed: true }));
  });
});

describe('times that lie too far ahead', () => {
  const ahead = T0 + 1e10;

  test('do not hold a gate', () => {
    const gate = new Gate({ ...closedGate(T0), heldUntil: ahead });
    expect(gate.admit({ due: 5 })).toBe(5);
  });

  test('do not keep probes away', () => {
    const { state } = new Gate().trip();
    expect(new Gate({ ...state, probes: { ...state.probes, at: ahead } }).admit()).toBe(1);
    expect(new Gate({ ...state, probes: { ...state.probes, at: T0, slotUntil: ahead } }).admit()).toBe(1);
  });

  test('do not stop a ramp', () => {
    const { state, now } = new Gate().serve(60, 30).ramp();
    if (state.ramp === null) throw new Error('expected a ramp');
    const gate = new Gate({ ...state, ramp: { ...state.ramp, tat: ahead, boundAt: ahead, limit: 0 } });
    gate.now = now;
    expect(gate.admit({ due: 1 })).toBe(1);
    gate.wait(10_000).admit({ due: 1 });
    expect(gate.state.phase).toBe('closed');
  });

  test('do not make every report one of an earlier epoch', () => {
    const gate = new Gate({ ...closedGate(T0), epoch: ahead });
    expect(gate.trip().state.phase).toBe('open');
  });

  test('do not stop a worker', () => {
    const gate = new Gate().report({ alive: 5, worker: 2 }).report({ environment: 10, worker: 1 });
    gate.state = { ...gate.state, workers: gate.state.workers.map((entry) => ({ ...entry, until: ahead })) };
    expect(gate.admit({ worker: 1 })).toBe(1);
  });
});
