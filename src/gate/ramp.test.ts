import { describe, expect, test } from 'vitest';
import { Gate, report, T0 } from '../../test/gate/facts.ts';
import { admissibleAt } from './admit.ts';
import { countOutcomes, rampAt, startRamp, step } from './ramp.ts';
import type { Ramp } from './ramp-state.ts';
import { chargeTokens, tokensAt, tokensOf } from './rate.ts';

const PEAK = 60;

/** One step of the ramp in which the rate was the limit; `share` of its outcomes failed. */
function stepped(
  ramp: Ramp,
  share: number,
  { isBound = true, ms = 4_000, windowShare = share, proven = PEAK as number | null } = {},
): Ramp {
  const runs = Math.max(10, Math.round((ramp.limit * ms) / 1_000));
  const environment = Math.round(runs * share);
  const counted = countOutcomes(
    { ...ramp, boundAt: isBound ? ramp.stepAt + 1 : ramp.stepAt },
    report({ alive: runs - environment, environment }),
  );
  return step(counted, proven, windowShare, ramp.stepAt + ms);
}

const limits = (ramp: Ramp, steps: number, share = 0): number[] => {
  const seen: number[] = [];
  for (let next = stepped(ramp, share); seen.length < steps; next = stepped(next, share))
    seen.push(Math.round(next.limit));
  return seen;
};

describe('a ramp', () => {
  test('begins at 5% of the peak, doubles to the peak, then adds tenths up to 1.4 of it', () => {
    const ramp = startRamp(PEAK, null, T0);
    expect(ramp.limit).toBe(3);
    expect(limits(ramp, 11)).toEqual([6, 12, 24, 48, 60, 66, 72, 78, 84, 84, 84]);
  });

  test('doubles without a ceiling where no peak is known', () => {
    const ramp = startRamp(null, null, T0);
    expect(ramp.limit).toBe(1);
    expect(stepped(stepped(ramp, 0, { proven: null }), 0, { proven: null }).limit).toBe(4);
    expect(stepped({ ...ramp, limit: 500 }, 0, { proven: null }).limit).toBe(1_000);
  });

  test('does not grow before the step is over, nor before the outcomes of two seconds are known', () => {
    const ramp = startRamp(PEAK, null, T0);
    const counted = countOutcomes({ ...ramp, boundAt: T0 + 1 }, report({ alive: 5 }));
    expect(step(counted, PEAK, 0, T0 + 10_000).limit).toBe(3);
    const enough = countOutcomes(counted, report({ alive: 1 }));
    expect(step(enough, PEAK, 0, T0 + 1_999).limit).toBe(3);
    expect(step(enough, PEAK, 0, T0 + 2_000).limit).toBe(6);
    const fast = { ...rampAt(50, 0, PEAK, T0), boundAt: T0 + 1 };
    expect(step(countOutcomes(fast, report({ alive: 9 })), PEAK, 0, T0 + 2_000).limit).toBe(50);
    expect(step(countOutcomes(fast, report({ alive: 10 })), PEAK, 0, T0 + 2_000).limit).toBe(60);
  });

  test('waits as long as its runs take, at most a minute', () => {
    const ramp = { ...startRamp(PEAK, null, T0), boundAt: T0 + 1 };
    const slow = countOutcomes(ramp, report({ alive: 10, slowestMs: 7_000 }));
    expect(step(slow, PEAK, 0, T0 + 6_999).limit).toBe(3);
    expect(step(slow, PEAK, 0, T0 + 7_000).limit).toBe(6);
    const endless = countOutcomes(ramp, report({ alive: 10, slowestMs: 7_000_000 }));
    expect(step(endless, PEAK, 0, T0 + 60_000).limit).toBe(6);
  });

  test('does not grow when the rate was not the limit: a rate that is not used proves nothing', () => {
    expect(stepped(startRamp(PEAK, null, T0), 0, { isBound: false }).limit).toBe(3);
  });

  test('creeps above the ceiling after five healthy minutes there', () => {
    let ramp = rampAt(84, 0, PEAK, T0);
    for (let s = 0; s < 300; s += 4) ramp = stepped(ramp, 0);
    expect(ramp.limit).toBe(84);
    for (let s = 0; s < 60; s += 4) ramp = stepped(ramp, 0);
    expect(ramp.limit / 84).toBeCloseTo(1.2, 1);
  });

  test('cuts to 0.9 in trouble and comes back along a curve that is flat at the old limit', () => {
    const cut = stepped(rampAt(50, 0, PEAK, T0), 0.3);
    expect(cut.limit).toBe(45);
    expect(limits(cut, 16)).toEqual([47, 48, 49, 49, 50, 50, 50, 50, 50, 50, 51, 51, 52, 53, 55, 57]);
  });

  test('halves when half of the step failed', () => {
    expect(stepped(rampAt(50, 0, PEAK, T0), 0.6).limit).toBe(25);
  });

  test('takes one or two failures of ten for chance', () => {
    expect(stepped(startRamp(PEAK, null, T0), 0.2).limit).toBe(6);
  });

  test('never cuts below where it began', () => {
    expect(stepped(rampAt(3.1, 0, PEAK, T0), 0.4).limit).toBe(3);
  });

  test('learns failures that four cuts have not changed, and takes the cuts back', () => {
    let ramp = rampAt(60, 0, PEAK, T0);
    for (let i = 0; i < 5; i++) ramp = stepped(ramp, 0.3);
    expect(ramp).toMatchObject({ limit: 60, top: 0 });
    expect(ramp.background).toBeCloseTo(0.3);
    expect(stepped(ramp, 0.3).limit).toBe(66);
  });

  test('does not learn failures that become fewer with every cut', () => {
    let ramp = rampAt(60, 0, PEAK, T0);
    for (const share of [0.4, 0.35, 0.3, 0.26, 0.2]) ramp = stepped(ramp, share);
    expect(ramp.background).toBe(0);
    expect(ramp.limit).toBeCloseTo(60 * 0.9 ** 5);
  });

  test('learns failures at its base rate from the whole window, but never more than 35%', () => {
    const ramp = startRamp(PEAK, null, T0);
    expect(stepped(ramp, 0.4, { windowShare: 0.25 }).background).toBe(0.25);
    expect(stepped(ramp, 0.4, { windowShare: 0.45 }).background).toBe(0.35);
  });

  test('forgets its background as the failures go', () => {
    const ramp = { ...rampAt(60, 0, PEAK, T0), background: 0.3 };
    expect(stepped(ramp, 0).background).toBe(0.15);
  });

  test('begins at half of where the last one failed, and is careful near there if the rate may be to blame', () => {
    expect(startRamp(PEAK, { limit: 40, top: 0 }, T0)).toMatchObject({ limit: 20, top: 0 });
    const careful = startRamp(PEAK, { limit: 40, top: 40 }, T0);
    expect(limits(careful, 4)).toEqual([36, 37, 38, 39]);
  });
});

describe('a gate in its ramp', () => {
  test('opens again at a streak, and remembers where', () => {
    const gate = new Gate().serve(PEAK, 30).ramp();
    gate.report({ environment: 5 });
    expect(gate.state.phase).toBe('open');
    expect(gate.rules.at(-1)).toBe('opened: ramp failed: streak');
    expect(gate.state.failedRamp?.limit).toBeCloseTo(3);
    expect(gate.state.failedRamp?.top).toBe(gate.state.failedRamp?.limit);
  });

  test('opens again when more than half of the window failed', () => {
    const gate = new Gate().serve(PEAK, 30).ramp().report({ alive: 2, environment: 10, tail: 1 });
    expect(gate.rules.at(-1)).toBe('opened: ramp failed: ratio');
  });

  test('does not open when only one of several workers fails', () => {
    const gate = new Gate()
      .serve(PEAK, 30)
      .ramp()
      .report({ alive: 1, worker: 2 })
      .report({ environment: 9, worker: 1 });
    expect(gate.state.phase).toBe('ramp');
  });

  test('forgets after five minutes where the last ramp failed', () => {
    const failed = (waitMs: number): number | undefined => {
      const gate = new Gate().serve(PEAK, 30).ramp();
      if (gate.state.ramp === null) throw new Error('expected a ramp');
      gate.state = { ...gate.state, ramp: { ...gate.state.ramp, limit: 40 } };
      gate.report({ environment: 30 }).wait(waitMs);
      for (let i = 0; i < 3; i++) {
        gate.admit();
        gate.report({ alive: 1 });
      }
      return gate.state.ramp?.limit;
    };
    expect(failed(10_000)).toBe(20);
    expect(failed(301_000)).toBeCloseTo(3, 1);
  });

  test('closes when the rate has not been the limit for 10 s', () => {
    const gate = new Gate().serve(PEAK, 30).ramp();
    gate.admit({ due: 2, places: 10 });
    gate.wait(9_999).admit({ due: 1 });
    expect(gate.state.phase).toBe('ramp');
    expect(gate.wait(1).admit({ due: 500, places: 500 })).toBe(500);
    expect(gate.rules.at(-1)).toBe('closed: rate not used');
  });

  test('stays while claims take all the rate and leave due jobs behind, even if each gets what it has room for', () => {
    const gate = new Gate().serve(PEAK, 30).ramp();
    for (let s = 0; s < 30; s++) {
      gate.wait(1_000);
      for (let claim = 0; claim < 100 && gate.admit({ due: 1_000, places: 1 }) > 0; claim++);
    }
    expect(gate.state.phase).toBe('ramp');
  });

  test('closes although its rate is just used up, when no due job is left behind', () => {
    const gate = new Gate().serve(PEAK, 30).ramp();
    for (let s = 0; s < 10; s++) {
      expect(gate.admit({ due: 2 })).toBe(2);
      gate.wait(1_000);
    }
    gate.admit({ due: 2 });
    expect(gate.state.phase).toBe('closed');
  });

  test('begins its closed time without the failures of the ramp', () => {
    const gate = new Gate().serve(PEAK, 30).ramp().report({ alive: 20, environment: 4 }).wait(10_000);
    gate.admit({ due: 0 });
    expect(gate.state).toMatchObject({ phase: 'closed', window: { streak: { count: 0 } } });
    expect(gate.report({ environment: 9 }).state.phase).toBe('closed');
  });

  test('does not close while failures are trouble', () => {
    const gate = new Gate().serve(PEAK, 30).ramp().report({ alive: 7, environment: 4, tail: 1 }).wait(10_000);
    gate.admit({ due: 1 });
    expect(gate.state.phase).toBe('ramp');
  });

  test('refuses what is above its rate, and says when to come back', () => {
    const gate = new Gate().serve(PEAK, 30).ramp();
    expect(gate.admit()).toBe(2);
    const at = admissibleAt(gate.state, { pays: 'nothing' }, gate.now) ?? 0;
    expect(at - gate.now).toBeGreaterThan(100);
    expect(gate.wait(at - gate.now).admit()).toBe(1);
  });
});

describe('GCRA', () => {
  test('allows the burst and one more, then one per interval', () => {
    expect(tokensOf(0, 10, 500, T0)).toBe(6);
    const tat = chargeTokens(0, 10, 6, T0);
    expect(tokensOf(tat, 10, 500, T0)).toBe(0);
    expect(tokensOf(tat, 10, 500, T0 + 100)).toBe(1);
    expect(tokensOf(T0 + 60_000, 10, 500, T0)).toBe(0);
    expect(tokensAt(tat, 10, 500, 1, T0)).toBe(T0 + 100);
    expect(tokensAt(tat, 10, 500, 3, T0)).toBe(T0 + 300);
  });
});

test('a job that was handed back makes room for another one', () => {
  const gate = new Gate().ramp();
  const starts = gate.admit({ due: 100, places: 100 });
  expect(starts).toBeGreaterThan(0);
  expect(gate.admit({ due: 100, places: 100 })).toBe(0);
  gate.report({ none: starts, unstarted: starts });
  expect(gate.admit({ due: 100, places: 100 })).toBe(starts);
});
