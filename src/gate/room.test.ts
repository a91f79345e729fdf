import { describe, expect, test } from 'vitest';
import { Gate, steady } from '../../test/gate/facts.ts';
import { admitClaim } from './admit-claim.ts';
import { pin } from './operate.ts';
import { admitted, gateRoom } from './room.ts';
import { closedGate, type GateState } from './state.ts';

const WORKER = 1;

function rampOf(starts: number): Gate {
  const gate = new Gate().ramp();
  const { ramp } = gate.state;
  if (ramp === null) throw new Error('expected a ramp');
  gate.state = { ...gate.state, ramp: { ...ramp, limit: 2 * (starts - 1), tat: gate.now, boundAt: gate.now - 1 } };
  return gate;
}

function failing(until: number, gate: Gate): GateState {
  return { ...gate.state, workers: [{ worker: WORKER, streak: 5, at: gate.now, intervalMs: 2_000, until }] };
}

const gates: Record<string, () => Gate> = {
  'that is closed': () => new Gate(),
  'that just opened': () => new Gate().trip(),
  'that may probe': () => new Gate().trip().wait(2_000),
  'that ramps': () => rampOf(6),
  'that ramps, a batch later': () => {
    const gate = rampOf(41);
    gate.admit();
    return gate.wait(40);
  },
  'that holds': () => new Gate().report({ throttled: 1, retryAfterMs: 60_000 }),
  'that is held for a moment': () => {
    const gate = new Gate();
    gate.state = { ...gate.state, heldUntil: gate.now + 1_000 };
    return gate;
  },
  'that forgot its outage': () => new Gate().trip().wait(86_400_000),
  'of a failing worker that waits': () => {
    const gate = new Gate();
    gate.state = failing(gate.now + 1_000, gate);
    return gate;
  },
  'of a failing worker whose turn it is': () => {
    const gate = new Gate();
    gate.state = failing(gate.now, gate);
    return gate;
  },
  'that is pinned open': () => {
    const gate = new Gate();
    gate.state = pin(gate.state, 'open', 'ops', gate.now, steady).state;
    return gate;
  },
  'that is pinned closed': () => {
    const gate = new Gate().trip();
    gate.state = pin(gate.state, 'closed', 'ops', gate.now, steady).state;
    return gate;
  },
};

describe('the room behind a gate', () => {
  for (const [name, make] of Object.entries(gates)) {
    for (const due of [0, 1, 4, 6, 50]) {
      test(`${name} and what is charged are those of one claim: ${due} fresh jobs due`, () => {
        const { state, now } = make();
        const demand = { worker: WORKER, places: 20, keptForRetries: 0, fresh: due, retry: 0, canProbe: true };
        const claim = admitClaim(state, null, demand, now, steady);
        const room = gateRoom(state, null, WORKER, now, steady);
        const fresh = Math.min(room.starts, due, 20);
        expect(fresh).toBe(claim.isProbe ? 1 : claim.fresh);
        expect(room.isProbe && fresh > 0).toBe(claim.isProbe);
        const charge = admitted(room, { fresh, retries: 0, isMoreDue: due > fresh }, now);
        expect(charge.state).toEqual(claim.state);
        expect(charge.epoch).toBe(claim.epoch);
        expect(room.events).toEqual(claim.events);
        if (due > 0 && fresh === 0) expect(room.freshAt).toBe(claim.nextAt);
      });
    }
  }

  test('admits a suspect beside everything but an outage, a hold and a pin', () => {
    const admits = Object.entries(gates).filter(([, make]) => {
      const { state, now } = make();
      return gateRoom(state, null, WORKER, now, steady).admitsSuspect;
    });
    expect(admits.map(([name]) => name)).toEqual([
      'that is closed',
      'that may probe',
      'that ramps',
      'that ramps, a batch later',
      'that forgot its outage',
      'of a failing worker that waits',
      'of a failing worker whose turn it is',
      'that is pinned closed',
    ]);
  });

  test('lets retries start as far as the budget pays, and says when the next is paid for', () => {
    const gate = new Gate();
    gate.state = { ...gate.state, budget: { tokens: 1.5, at: gate.now } };
    const room = gateRoom(gate.state, null, WORKER, gate.now, steady);
    expect([room.starts, room.retries, room.chargesAll, room.chargesRetries]).toEqual([
      Number.POSITIVE_INFINITY,
      1,
      false,
      true,
    ]);
    expect(room.retryAt).toBe(gate.now);
    const { state, epoch } = admitted(room, { fresh: 3, retries: 1, isMoreDue: true }, gate.now);
    expect(state.budget.tokens).toBeCloseTo(0.5);
    expect(epoch).toBeGreaterThan(0);
    expect(gateRoom(state, null, WORKER, gate.now, steady).retryAt).toBeGreaterThan(gate.now);
    expect(admitted(room, { fresh: 3, retries: 0, isMoreDue: true }, gate.now).state).toBe(gate.state);
  });

  test('of a key is that of its parent too: one that finds no probe left is put off', () => {
    const child = new Gate(closedGate(new Gate().now, { keyed: true })).trip().wait(2_000);
    const { state, now } = child;
    const asked = closedGate(now);
    // Nine others have just begun.
    const parent = { ...asked, children: { ...asked.children, probesTat: now + 900 } };
    const room = gateRoom(state, parent, WORKER, now, steady);
    expect(room).toMatchObject({ starts: 1, isProbe: true });
    const charge = admitted(room, { fresh: 1, retries: 0, isMoreDue: true }, now);
    expect(charge.parent).not.toEqual(parent);
    const second = gateRoom(state, charge.parent, WORKER, now, steady);
    expect([second.starts, second.isProbe]).toEqual([0, false]);
    expect(second.freshAt).toBeGreaterThan(now);
    expect(second.state.probes.at).toBeGreaterThan(now);
  });
});
