import { describe, expect, test } from 'vitest';
import { steady, T0 } from '../../test/gate/facts.ts';
import { emptyReport, type GateReport } from './evidence.ts';
import { admitChildProbe, applyParentReport, isCountDue } from './parent.ts';
import { closedGate, type GateState } from './state.ts';

const report = (facts: Partial<GateReport> = {}): GateReport => ({ ...emptyReport(1, 0, T0, 100), ...facts });

describe('a parent', () => {
  test.each([
    [20, 6, 'open'],
    [20, 5, 'closed'],
    [19, 19, 'closed'],
    [1_000, 300, 'open'],
    [1_000, 299, 'closed'],
  ])('of %i active children, %i opened within a minute: %s', (active, opened, phase) => {
    const { state, events } = applyParentReport(
      closedGate(T0),
      report({ environment: 1 }),
      { active, opened },
      T0,
      steady,
    );
    expect(state.phase).toBe(phase);
    expect(events.map(({ rule }) => rule)).toEqual(phase === 'open' ? [`children ${opened} of ${active}`] : []);
  });

  test('counts children that live and have no row', () => {
    const living = applyParentReport(closedGate(T0), report({ alive: 90, livingChildren: 90 }), null, T0, steady).state;
    const trouble = report({ environment: 1 });
    const children = { active: 20, opened: 20 };
    expect(applyParentReport(living, trouble, children, T0 + 1_000, steady).state.phase).toBe('closed');
    expect(applyParentReport(living, trouble, children, T0 + 61_000, steady).state.phase).toBe('open');
  });

  test('is never opened by its own window: one busy dead child is no reason', () => {
    let state: GateState = closedGate(T0);
    for (let n = 0; n < 50; n++) {
      const trouble = report({ environment: 10, tail: 10, jobs: [0xffff, 0xffff] });
      state = applyParentReport(state, trouble, { active: 50, opened: 1 }, T0 + n * 1_000, steady).state;
    }
    expect(state.phase).toBe('closed');
  });

  test('is over when its children live again', () => {
    const { state } = applyParentReport(
      closedGate(T0),
      report({ environment: 1 }),
      { active: 20, opened: 20 },
      T0,
      steady,
    );
    const after = applyParentReport(state, report({ alive: 9, livingChildren: 5 }), null, T0 + 1_000, steady);
    expect(after.state.phase).toBe('closed');
  });

  test('has its children counted once a second, and not while it is open', () => {
    const counted = applyParentReport(closedGate(T0), report(), { active: 1, opened: 0 }, T0, steady).state;
    expect(isCountDue(counted, T0 + 999)).toBe(false);
    expect(isCountDue(counted, T0 + 1_000)).toBe(true);
    expect(isCountDue({ ...counted, phase: 'open' }, T0 + 1_000)).toBe(false);
  });

  test('lets its children probe ten times a second, and ten at once', () => {
    let state = closedGate(T0);
    let probes = 0;
    for (let ms = 0; ms < 10_000; ms += 10) {
      const admitted = admitChildProbe(state, T0 + ms);
      if (admitted === null) continue;
      probes++;
      state = admitted;
    }
    expect(probes).toBe(109);
  });

  test('is not stopped by a stored time that lies far ahead', () => {
    const state = closedGate(T0);
    const ahead = { ...state, children: { ...state.children, probesTat: T0 + 1e9 } };
    expect(admitChildProbe(ahead, T0)).toBeNull();
    expect(
      admitChildProbe({ ...state, children: { ...state.children, probesTat: T0 + 1_000 } }, T0 + 1_001),
    ).not.toBeNull();
  });
});
