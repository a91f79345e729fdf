import { describe, expect, test } from 'vitest';
import { Gate, steady, T0 } from '../../test/gate/facts.ts';
import { pin } from './operate.ts';
import { admitChildProbe, applyChildren } from './parent.ts';
import { closedGate } from './state.ts';

describe('a parent', () => {
  test.each([
    [20, 6, 'open'],
    [20, 5, 'closed'],
    [19, 19, 'closed'],
    [1_000, 300, 'open'],
    [1_000, 299, 'closed'],
  ])('of %i active children, %i opened within a minute: %s', (active, opened, phase) => {
    const { state, events } = applyChildren(closedGate(T0), { active, opened }, T0, steady);
    expect(state.phase).toBe(phase);
    expect(events.map(({ rule }) => rule)).toEqual(phase === 'open' ? [`children ${opened} of ${active}`] : []);
  });

  test('that is open already, or pinned, does not change', () => {
    for (const state of [
      new Gate().trip().state,
      new Gate().ramp().state,
      pin(closedGate(T0), 'closed', 'anna', T0, steady).state,
    ]) {
      expect(applyChildren(state, { active: 20, opened: 20 }, T0, steady).state).toBe(state);
    }
  });

  test('lets its children probe ten times a second', () => {
    let tat = 0;
    let probes = 0;
    for (let ms = 0; ms < 10_000; ms += 10) {
      const admitted = admitChildProbe(tat, T0 + ms);
      if (admitted === null) continue;
      probes++;
      tat = admitted.tat;
    }
    expect(probes).toBe(100);
  });

  test('is not stopped by a stored time that lies far ahead', () => {
    expect(admitChildProbe(T0 + 1e9, T0)).toBeNull();
    expect(admitChildProbe(Math.min(T0 + 1e9, T0 + 1_000), T0 + 1_001)).not.toBeNull();
  });
});
