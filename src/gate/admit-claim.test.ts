import { describe, expect, test } from 'vitest';
import { Gate, steady, T0 } from '../../test/gate/facts.ts';
import { admitClaim, type ClaimAdmission, type GatedDemand } from './admit-claim.ts';
import { addRun, emptyReport } from './evidence.ts';
import { closedGate, type GateState } from './state.ts';

const WORKER = 1;

function demand(changes: Partial<GatedDemand> = {}): GatedDemand {
  return { worker: WORKER, places: 100, keptForRetries: 0, fresh: 0, retry: 0, canProbe: true, ...changes };
}

/** Asks a gate, which keeps the answer. */
function claim(gate: Gate, changes: Partial<GatedDemand>, parent: GateState | null = null): ClaimAdmission {
  const admission = admitClaim(gate.state, parent, demand(changes), gate.now, steady);
  gate.state = admission.state;
  return admission;
}

/** A gate in a ramp whose rate lets `starts` jobs start at once. */
function rampOf(starts: number): Gate {
  const gate = new Gate().ramp();
  const { ramp } = gate.state;
  if (ramp === null) throw new Error('expected a ramp');
  gate.state = { ...gate.state, ramp: { ...ramp, limit: 2 * (starts - 1), tat: gate.now } };
  return gate;
}

describe('a claim behind an open gate', () => {
  test('gets one probe of whatever lane is due', () => {
    for (const due of [{ fresh: 5 }, { retry: 5 }, { fresh: 1, retry: 1 }]) {
      const gate = new Gate().trip().wait(2_000);
      const { epoch } = gate.state;
      expect(claim(gate, due)).toMatchObject({ isProbe: true, fresh: 0, retry: 0, epoch });
      expect(gate.state.probes.slotUntil).toBeGreaterThan(gate.now);
    }
  });

  test('gets none before its time, none beside another probe, none without room and none without a job', () => {
    const gate = new Gate().trip();
    const { at } = gate.state.probes;
    expect(claim(gate, { fresh: 5 })).toMatchObject({ isProbe: false, fresh: 0, retry: 0, epoch: 0, nextAt: at });
    gate.wait(2_000);
    const before = gate.state;
    expect(claim(gate, { fresh: 5, places: 0 }).isProbe).toBe(false);
    expect(claim(gate, {})).toMatchObject({ isProbe: false, nextAt: null });
    expect(gate.state).toBe(before);
    const { nextAt } = claim(gate, { fresh: 5 });
    expect(nextAt).toBe(gate.state.probes.slotUntil);
    expect(claim(gate, { fresh: 5, worker: 2 })).toMatchObject({ isProbe: false, nextAt });
  });

  test('of a worker that can run none of the first jobs gets no probe, and may move one aside when a probe could start', () => {
    const gate = new Gate().trip();
    expect(claim(gate, { fresh: 5, canProbe: false }).movesAside).toBe(false);
    const before = gate.wait(2_000).state;
    const parent = closedGate(T0);
    const { state, ...rest } = claim(gate, { fresh: 5, canProbe: false }, parent);
    expect(rest).toMatchObject({ movesAside: true, isProbe: false, epoch: 0, parent });
    expect(state).toBe(before);
    expect(claim(gate, { fresh: 5 }, parent).isProbe).toBe(true);
    expect(claim(gate, { fresh: 5, canProbe: false }, parent).movesAside).toBe(false);
  });

  test('gets nothing while it is pinned open, and is not told a time', () => {
    const gate = new Gate().trip().wait(60_000);
    gate.state = { ...gate.state, pin: 'open' };
    expect(claim(gate, { fresh: 5 })).toMatchObject({ isProbe: false, fresh: 0, nextAt: null });
  });

  test('is told of what time alone has changed', () => {
    const gate = new Gate().report({ environment: 4 }).wait(11_000);
    const { events, state } = claim(gate, { fresh: 5 });
    expect([events.map(({ rule }) => rule), state.phase]).toEqual([['lone'], 'open']);
  });
});

describe('a probe of a keyed gate', () => {
  test('is paid for by the parent, and waits for the rate of all probes without taking its slot', () => {
    const [first, second] = [new Gate().trip().wait(2_000), new Gate().trip().wait(2_000)];
    const asked = closedGate(T0);
    // Nine others have just begun.
    const busy = { ...asked, children: { ...asked.children, probesTat: first.now + 900 } };
    const { parent, isProbe } = claim(first, { fresh: 1 }, busy);
    expect(isProbe).toBe(true);
    const waiting = claim(second, { fresh: 1 }, parent);
    expect(waiting).toMatchObject({ isProbe: false, epoch: 0, parent });
    // Not at once again: thousands of keys would keep claims busy with asking.
    const { nextAt } = waiting;
    expect((nextAt as number) - second.now).toBeGreaterThanOrEqual(1_500);
    expect(claim(second.wait((nextAt as number) - second.now), { fresh: 1 }, parent).isProbe).toBe(true);
  });

  test('is not needed once the outage of all keys is over: the key begins its ramp', () => {
    const key = new Gate().trip();
    const during = { ...closedGate(T0), phase: 'open' as const, covered: [[T0 - 60_000, key.now] as const] };
    expect(claim(key, { fresh: 1 }, during)).toMatchObject({ isProbe: false, fresh: 0 });
    const over = { ...during, phase: 'closed' as const, epoch: key.now + 5_000 };
    expect(claim(key.wait(5_000), { fresh: 1 }, over)).toMatchObject({
      isProbe: false,
      fresh: 1,
      events: [{ change: 'recovering', rule: 'parent back' }],
    });
  });

  test('is needed by a key that opened after the outage of all keys', () => {
    const key = new Gate().trip().wait(2_000);
    const over = { ...closedGate(T0), epoch: T0 - 1, covered: [[T0 - 60_000, T0 - 30_000] as const] };
    expect(claim(key, { fresh: 1 }, over)).toMatchObject({ isProbe: true });
  });

  test('needs no row of the parent', () => {
    expect(claim(new Gate().trip().wait(2_000), { fresh: 1 })).toMatchObject({ isProbe: true, parent: null });
  });

  test('charges the parent nothing when no probe starts', () => {
    const parent = closedGate(T0);
    expect(claim(new Gate().trip(), { fresh: 1 }, parent).parent).toBe(parent);
    const ramp = claim(rampOf(5), { fresh: 1 }, parent);
    expect([ramp.fresh, ramp.parent]).toEqual([1, parent]);
  });
});

describe('a claim behind a gate in its ramp', () => {
  test('gets what the rate allows, and its epoch', () => {
    const gate = rampOf(5);
    const { epoch } = gate.state;
    expect(claim(gate, { fresh: 50 })).toMatchObject({ fresh: 5, retry: 0, isProbe: false, epoch });
    expect(claim(gate, { fresh: 50 })).toMatchObject({ fresh: 0, epoch: 0 });
  });

  test.each([
    // Places, kept for retries, due fresh and retry, and how many of each start of the 9 that the rate allows.
    [100, 2, 50, 50, 7, 2],
    [100, 0, 50, 50, 9, 0],
    [100, 50, 50, 50, 0, 9],
    [100, 2, 50, 1, 8, 1],
    [100, 2, 3, 50, 3, 6],
    [100, 2, 0, 50, 0, 9],
    [4, 1, 50, 50, 3, 1],
    [4, 9, 50, 50, 0, 4],
    [4, 1, 2, 50, 2, 2],
    [100, 2, 3, 4, 3, 4],
  ])(
    '%i places, %i kept for retries, %i fresh and %i retries due',
    (places, keptForRetries, fresh, retry, ...starts) => {
      const admission = claim(rampOf(9), { places, keptForRetries, fresh, retry });
      expect([admission.fresh, admission.retry]).toEqual(starts);
    },
  );

  test('gets no more retries than the budget pays for, and fresh jobs instead', () => {
    const gate = rampOf(20);
    gate.state = { ...gate.state, budget: { tokens: 3, at: gate.now } };
    expect(claim(gate, { fresh: 50, retry: 50, keptForRetries: 10 })).toMatchObject({ retry: 3, fresh: 17 });
    expect(gate.state.budget.tokens).toBe(0);
  });

  test('is told when the earliest of what is due may start', () => {
    const gate = rampOf(20);
    gate.state = { ...gate.state, budget: { tokens: -4, at: gate.now } };
    expect(claim(gate, { retry: 5 }).nextAt).toBe(gate.now + 5_000);
    const { nextAt } = claim(gate, { fresh: 50, retry: 5 });
    expect(nextAt).toBeGreaterThan(gate.now);
    expect(nextAt).toBeLessThan(gate.now + 1_000);
    expect(claim(rampOf(20), { fresh: 0, retry: 0 }).nextAt).toBeNull();
  });
});

describe('a claim behind a closed gate', () => {
  test('gets everything that pays nothing, and writes nothing', () => {
    const gate = new Gate();
    const before = gate.state;
    expect(claim(gate, { fresh: 500, places: 60 })).toMatchObject({ fresh: 60, retry: 0, epoch: 0, events: [] });
    expect(gate.state).toBe(before);
  });

  test('gets the retries that the budget pays for, and they are charged once', () => {
    const gate = new Gate();
    const { retry, epoch } = claim(gate, { retry: 50 });
    expect([retry, gate.state.budget.tokens]).toEqual([10, 0]);
    const run = { jobId: 'a', epoch, claimedAt: gate.now, durationMs: 1, isFirstAttempt: false, isRetry: true };
    const report = emptyReport(WORKER, epoch, gate.now, 1);
    addRun(report, { ...run, outcome: { kind: 'completed' } });
    expect(report.retries).toBe(0);
  });

  test('of a suspect worker gets one job after its pause, and others get all', () => {
    const gate = new Gate().report({ worker: 2, alive: 100 }).report({ worker: WORKER, environment: 10 });
    const [suspect] = gate.state.workers;
    expect(claim(gate, { fresh: 9 })).toMatchObject({ fresh: 0, nextAt: suspect?.until });
    expect(claim(gate, { fresh: 9, worker: 2 })).toMatchObject({ fresh: 9 });
    expect(claim(gate.wait(2_000), { fresh: 9 })).toMatchObject({ fresh: 1 });
  });

  test('that was in its ramp until now gets everything', () => {
    const gate = rampOf(2).wait(11_000);
    const { fresh, events, epoch } = claim(gate, { fresh: 50 });
    expect([fresh, events.map(({ change }) => change), epoch]).toEqual([50, ['closed'], 0]);
  });
});

test('the keys of a parent that are due together probe together, and one that finds no room keeps to the longest wait', () => {
  const down = new Gate(closedGate(T0, { keyed: true })).trip().wait(2_000);
  const { now } = down;
  let parent: GateState | null = closedGate(now);
  const probed = Array.from({ length: 12 }, () => {
    const admission = admitClaim(down.state, parent, demand({ fresh: 1 }), now, steady);
    parent = admission.parent;
    return admission.isProbe;
  });
  expect(probed).toEqual([...Array(10).fill(true), false, false]);
  const slow = { ...down.state, probes: { ...down.state.probes, intervalMs: 19_000 } };
  const { state } = admitClaim(slow, parent, demand({ fresh: 1 }), now, steady);
  expect(state.probes.intervalMs).toBe(20_000);
});
