import { describe, expect, test } from 'vitest';
import { Gate, T0 } from '../../test/gate/facts.ts';
import { accessFor, accessOf, freeAccess, isFree } from './access.ts';
import { closedGate, type GateState } from './state.ts';

const HOUR_MS = 3_600_000;

describe('the partitions of a resource', () => {
  test('are free behind a gate that is closed and has nothing to say', () => {
    const access = accessOf(closedGate(T0), T0);
    expect(access).toEqual(freeAccess);
    expect(isFree(access)).toBe(true);
  });

  test('are gated while the gate is open, from when the next probe may start; suspects wait until then too', () => {
    const gate = new Gate().trip();
    const { at } = gate.state.probes;
    expect(at).toBeGreaterThan(gate.now);
    expect(accessOf(gate.state, gate.now)).toEqual({
      fresh: { gated: true, at },
      retry: { gated: true, at },
      suspect: { gated: false, at },
    });
    gate.wait(2_000).admit();
    expect(accessOf(gate.state, gate.now).fresh).toEqual({ gated: true, at: gate.state.probes.slotUntil });
  });

  test('are gated in the ramp, and suspects are free', () => {
    const gate = new Gate().ramp();
    expect(accessOf(gate.state, gate.now)).toEqual({
      fresh: { gated: true, at: gate.now },
      retry: { gated: true, at: gate.now },
      suspect: { gated: false, at: 0 },
    });
    gate.admit();
    expect(accessOf(gate.state, gate.now).fresh.at).toBeGreaterThan(gate.now);
  });

  test('wait for the end of a hold, suspects too', () => {
    const gate = new Gate().report({ throttled: 1, retryAfterMs: HOUR_MS });
    const at = T0 + HOUR_MS;
    expect(accessOf(gate.state, gate.now)).toMatchObject({
      fresh: { gated: true, at },
      retry: { gated: true, at },
      suspect: { gated: false, at },
    });
  });

  test('are gated behind a closed gate that is held, and free when the hold is over', () => {
    const held: GateState = { ...closedGate(T0), heldUntil: T0 + 1_000 };
    expect(accessOf(held, T0).fresh).toEqual({ gated: true, at: T0 + 1_000 });
    const over = accessOf(held, T0 + 1_000);
    expect([over.fresh, over.retry]).toEqual([freeAccess.fresh, freeAccess.retry]);
    expect(over.suspect.at).toBeLessThanOrEqual(T0 + 1_000);
  });

  test('are not free while only suspects or retries wait', () => {
    expect(isFree({ ...freeAccess, suspect: { gated: false, at: T0 } })).toBe(false);
    expect(isFree({ ...freeAccess, retry: { gated: true, at: T0 } })).toBe(false);
  });

  test('are gated while one worker is suspect, so that this one can be kept from them', () => {
    const gate = new Gate().report({ worker: 1, alive: 100 }).report({ worker: 2, environment: 10 });
    expect(gate.state.phase).toBe('closed');
    expect(accessOf(gate.state, gate.now).fresh).toEqual({ gated: true, at: gate.now });
    expect(accessOf(gate.report({ worker: 2, alive: 1 }).state, gate.now)).toEqual(freeAccess);
  });

  test('are free of a worker that fails and is not suspect yet', () => {
    const gate = new Gate().report({ worker: 1, alive: 100 }).report({ worker: 2, environment: 3 });
    expect(gate.state.workers).toHaveLength(1);
    expect(accessOf(gate.state, gate.now)).toEqual(freeAccess);
  });

  test.each([
    [5, false],
    [6, true],
  ])('of 10 retries that are saved up, %i were spent: retries alone are gated is %s', (retries, gated) => {
    const gate = new Gate().report({ alive: 1, retries });
    const { fresh, retry, suspect } = accessOf(gate.state, gate.now);
    expect([fresh.gated, retry, suspect]).toEqual([false, { gated, at: gated ? gate.now : 0 }, freeAccess.suspect]);
  });

  test('of retries are gated until the budget pays for the next one', () => {
    const gate = new Gate().report({ alive: 1, retries: 12 });
    expect(accessOf(gate.state, gate.now).retry).toEqual({ gated: true, at: T0 + 3_000 });
  });

  test('of retries are gated by the budget of their own peak', () => {
    const gate = new Gate().serve(100, 30);
    const saved = 10 * (100 * 0.1 + 100 * 0.2);
    expect(accessOf(gate.report({ alive: 1, retries: 0.4 * saved }).state, gate.now).retry.gated).toBe(false);
    expect(accessOf(gate.report({ alive: 1, retries: 0.2 * saved }).state, gate.now).retry.gated).toBe(true);
  });

  test('are free behind a gate that is pinned closed, whatever it knows', () => {
    const gate = new Gate().report({ alive: 1, retries: 100 });
    const pinned: GateState = { ...gate.state, pin: 'closed', heldUntil: T0 + HOUR_MS };
    expect(accessOf(pinned, gate.now)).toEqual(freeAccess);
  });

  test('admit nothing behind a gate that is pinned open', () => {
    const { fresh, retry, suspect } = accessOf({ ...new Gate().trip().state, pin: 'open' }, T0);
    expect([fresh, retry, suspect.at]).toEqual([{ gated: true, at: null }, { gated: true, at: null }, null]);
  });

  test('do not believe a time that no gate would have set', () => {
    const gate = new Gate().trip();
    const { probes } = gate.state;
    const stepped = { ...gate.state, probes: { ...probes, at: T0 + 1e12 } };
    expect(accessOf(stepped, T0).fresh.at).toBe(T0);
  });
});

describe('a lane', () => {
  test('of redriven jobs is treated as the fresh one: they pay no retry budget', () => {
    expect((['fresh', 'redrive', 'retry', 'suspect'] as const).map(accessFor)).toEqual([
      'fresh',
      'fresh',
      'retry',
      'suspect',
    ]);
  });
});
