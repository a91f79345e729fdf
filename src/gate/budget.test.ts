import { describe, expect, test } from 'vitest';
import { Gate } from '../../test/gate/facts.ts';
import { accessOf } from './access.ts';
import { admissibleAt } from './admit.ts';

const retries = (gate: Gate, due = 1_000): number => gate.admit({ pays: 'retry', due, places: due });

describe('the retry budget', () => {
  test('starts with 10 s of its floor, one a second', () => {
    const gate = new Gate();
    expect(retries(gate)).toBe(10);
    expect(retries(gate)).toBe(0);
    expect(admissibleAt(gate.state, { pays: 'retry' }, gate.now)).toBe(gate.now + 1_000);
    expect(retries(gate.wait(3_000))).toBe(3);
    expect(retries(gate.wait(3_600_000))).toBe(10);
  });

  test('does not hold fresh jobs', () => {
    const gate = new Gate();
    retries(gate);
    expect(gate.admit({ due: 77 })).toBe(77);
    expect(admissibleAt(gate.state, { pays: 'nothing' }, gate.now)).toBe(gate.now);
  });

  test('earns a fifth of a retry per first attempt that completed', () => {
    const gate = new Gate();
    retries(gate);
    gate.report({ alive: 25, firstSuccesses: 25 });
    expect(retries(gate)).toBe(5);
  });

  test('earns from runs of an earlier epoch too', () => {
    const gate = new Gate().ramp();
    gate.state = { ...gate.state, budget: { tokens: 0, at: gate.now } };
    gate.report({ epoch: 1, firstSuccesses: 25 });
    expect(gate.state.budget.tokens).toBe(5);
  });

  test('has a floor of 10% of the peak', () => {
    const gate = new Gate().serve(60, 30);
    retries(gate);
    expect(retries(gate.wait(1_010))).toBe(6);
  });

  test('saves no more than 10 s of floor and successes', () => {
    const gate = new Gate().serve(60, 300);
    expect(retries(gate)).toBe(Math.floor(3 * gate.state.peak.rate));
  });

  test('is not low because traffic has begun: a growing peak brings what its larger cap has room for', () => {
    const gate = new Gate();
    for (let n = 0; n < 3; n++) gate.wait(5_000).report({ alive: 5_000, spanMs: 5_000 });
    expect(gate.state.peak.rate).toBeGreaterThan(500);
    expect(accessOf(gate.state, gate.now).retry.gated).toBe(false);
  });

  test('is low when retries have spent it, also while the peak grows', () => {
    const gate = new Gate();
    for (let n = 0; n < 6; n++) gate.wait(5_000).report({ alive: 5_000, retries: 5_000, spanMs: 5_000 });
    expect(accessOf(gate.state, gate.now).retry.gated).toBe(true);
  });

  test('does not hold probes: an open gate would never learn', () => {
    const gate = new Gate();
    retries(gate);
    gate.trip().wait(1_500);
    gate.state = { ...gate.state, budget: { tokens: 0, at: gate.now } };
    expect(retries(gate)).toBe(1);
  });
});
