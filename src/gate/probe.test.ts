import { describe, expect, test } from 'vitest';
import { Gate, jobs, jobsOf, T0 } from '../../test/gate/facts.ts';
import { admissibleAt } from './admit.ts';
import { noProbes, pickProbe } from './probe.ts';
import { closedGate } from './state.ts';

/** A gate that has just opened; with equal jitter at its middle the first probe comes after 1.5 s. */
const opened = (keyed = false): Gate => new Gate(closedGate(T0, { keyed })).trip();
const probe = (gate: Gate, facts: Parameters<Gate['report']>[0]): Gate => {
  gate.now = admissibleAt(gate.state, { pays: 'nothing', worker: 1 }, gate.now) ?? Number.NaN;
  expect(gate.admit()).toBe(1);
  return gate.report(facts);
};
const nextIn = (gate: Gate): number =>
  (admissibleAt(gate.state, { pays: 'nothing' }, gate.now) ?? Number.NaN) - gate.now;

describe('an open gate', () => {
  test('starts nothing before the first probe, then one job', () => {
    const gate = opened();
    expect(gate.admit()).toBe(0);
    expect(nextIn(gate)).toBe(1_500);
    expect(gate.wait(1_500).admit()).toBe(1);
    expect(gate.admit()).toBe(0);
  });

  test('waits longer after every failed probe, up to 20 seconds', () => {
    const gate = opened();
    const waits: number[] = [];
    for (let i = 0; i < 11; i++) {
      probe(gate, { environment: 1 });
      waits.push(Math.round(nextIn(gate) / 750));
    }
    expect(waits.slice(0, 4)).toEqual([3, 5, 7, 10]);
    expect(nextIn(gate)).toBe(15_000);
  });

  test('waits up to a quarter of its outage when its key comes from the input, at least 20 s and at most 15 minutes', () => {
    const gate = opened(true);
    const waits: [downMs: number, waitMs: number][] = [];
    while (gate.now - gate.state.downSince < 4 * 3_600_000) {
      probe(gate, { environment: 1 });
      waits.push([gate.now - gate.state.downSince, nextIn(gate) / 0.75]);
    }
    for (const [downMs, waitMs] of waits)
      expect(waitMs).toBeLessThanOrEqual(Math.min(900_000, Math.max(20_000, downMs / 4)) + 2);
    expect(nextIn(gate)).toBe(675_000);
  });

  test('starts the ramp after three probes alive in a row', () => {
    const gate = opened();
    probe(probe(gate, { alive: 1 }), { alive: 1 });
    expect(gate.state.phase).toBe('open');
    expect(nextIn(gate)).toBe(0);
    probe(gate, { alive: 1 });
    expect(gate.state.phase).toBe('ramp');
    expect(gate.rules).toEqual(['opened: fast', 'recovering: probes alive']);
  });

  test('starts counting again after a failure', () => {
    const gate = opened();
    for (const facts of [{ alive: 1 }, { alive: 1 }, { environment: 1 }, { alive: 1 }, { alive: 1 }])
      probe(gate, facts);
    expect(gate.state.phase).toBe('open');
    expect(probe(gate, { alive: 1 }).state.phase).toBe('ramp');
  });

  test('frees the slot of a probe that never reports after 35 s', () => {
    const gate = opened().wait(1_500);
    gate.admit();
    expect(nextIn(gate)).toBe(35_000);
    expect(gate.wait(34_999).admit()).toBe(0);
    expect(gate.wait(1).admit()).toBe(1);
  });

  test('still counts the late report of a probe that ran for long', () => {
    const gate = opened().wait(1_500);
    gate.admit();
    gate.wait(60_000).report({ alive: 1 });
    expect(gate.state.probes.alive).toBe(1);
  });

  test('takes a probe that proved nothing for nothing, and does not spin', () => {
    const gate = opened();
    const { intervalMs } = gate.state.probes;
    probe(probe(gate, { alive: 1 }), { none: 1 });
    expect(gate.state.probes).toMatchObject({ alive: 1, slotUntil: 0, intervalMs });
    expect(nextIn(gate)).toBe(1_000);
  });

  test('takes a 429 for a sign of life, and waits as long as it asks', () => {
    const gate = probe(opened(), { throttled: 1, retryAfterMs: 9_000 });
    expect(gate.state.probes.alive).toBe(1);
    expect(nextIn(gate)).toBe(9_000);
  });

  test('becomes a ramp when nothing was heard of it for 24 h', () => {
    const gate = opened().wait(86_399_999);
    expect(gate.admit()).toBe(1);
    expect(gate.state.phase).toBe('open');
    gate.wait(1);
    expect(gate.admit()).toBe(1);
    expect(gate.rules.at(-1)).toBe('recovering: not heard of for 24 h');
  });

  test('reports once that it has been open for 5 days', () => {
    const gate = opened();
    for (let hour = 0; hour < 5 * 24 + 10; hour++) {
      gate.wait(3_600_000).admit();
      gate.report({ environment: 1 });
    }
    expect(gate.rules).toEqual(['opened: fast', 'dormant: down for 5 days']);
  });
});

describe('a job that always fails by itself', () => {
  test('counts as the reason once others have lived, and keeps the gate open no longer', () => {
    const gate = opened();
    probe(gate, { environment: 1, jobs: jobsOf('poison') });
    probe(gate, { alive: 1 });
    probe(gate, { environment: 1, jobs: jobsOf('poison') });
    expect(gate.state.probes.alive).toBe(1);
    probe(probe(gate, { alive: 1 }), { alive: 1 });
    expect(gate.state.phase).toBe('ramp');
  });

  test('a job that fails for the first time is evidence', () => {
    const gate = opened();
    probe(gate, { environment: 1, jobs: jobsOf('poison') });
    probe(probe(gate, { alive: 1 }), { environment: 1, jobs: jobsOf('other') });
    expect(gate.state.probes.alive).toBe(0);
  });

  test('is not drawn while others wait', () => {
    const probes = { ...noProbes, failed: jobsOf('poison') };
    for (const random of [0, 0.5, 0.999]) expect(pickProbe(probes, ['poison', 'a'], () => random)).toBe('a');
    expect(pickProbe(probes, ['poison'], () => 0.5)).toBe('poison');
    expect(pickProbe(probes, [], () => 0.5)).toBeNull();
  });

  test('is not drawn twice running while another waits, also when all have failed', () => {
    const gate = opened();
    for (const id of ['a', 'b', 'c']) probe(gate, { environment: 1, jobs: jobsOf(id) });
    for (const random of [0, 0.5, 0.999])
      expect(pickProbe(gate.state.probes, ['a', 'b', 'c'], () => random)).not.toBe('c');
    expect(pickProbe(gate.state.probes, ['c'], () => 0.5)).toBe('c');
  });

  test('any other is drawn at random', () => {
    const drawn = [0, 0.4, 0.9].map((random) => pickProbe(noProbes, ['a', 'b', 'c'], () => random));
    expect(drawn).toEqual(['a', 'b', 'c']);
  });

  test('of many failed jobs few are remembered, so that strangers are not taken for them', () => {
    const gate = opened();
    for (let i = 0; i < 20; i++) probe(gate, { environment: 1, jobs: [1 << i, 0] });
    probe(probe(gate, { alive: 1 }), { environment: 1, jobs: [1, 0] });
    expect(gate.state.probes.alive).toBe(0);
    expect(gate.state.probes.failed).not.toEqual(jobs(20));
  });
});

test('the worker whose probe failed lets another one go first', () => {
  const gate = opened();
  probe(gate, { environment: 1, worker: 1 });
  gate.wait(nextIn(gate));
  expect(gate.admit({ worker: 1 })).toBe(0);
  expect(gate.admit({ worker: 2 })).toBe(1);
  gate.report({ alive: 1, worker: 2 });
  expect(gate.admit({ worker: 1 })).toBe(0);
  expect(gate.wait(3_000).admit({ worker: 1 })).toBe(1);
});

test('a lone worker probes on, however long the interval has become', () => {
  const gate = opened();
  for (let n = 0; n < 20; n++) {
    gate.wait(nextIn(gate) + 3_000);
    expect(gate.admit({ worker: 1 })).toBe(1);
    gate.report({ environment: 1, tail: 1, worker: 1 });
  }
});

test('a probe whose handler was not called makes way for the next at once', () => {
  const gate = opened();
  gate.wait(nextIn(gate)).admit();
  gate.report({ none: 1, unstarted: 1 });
  expect(gate.admit()).toBe(1);
  gate.report({ none: 1, unstarted: 0 });
  expect(gate.admit()).toBe(0);
  expect(gate.wait(1_000).admit()).toBe(1);
});

test('probes that are handed back do not make the wait longer', () => {
  const gate = opened();
  const { intervalMs } = gate.state.probes;
  for (let n = 0; n < 20; n++) probe(gate, { none: 1, unstarted: 1 });
  expect(gate.state.probes.intervalMs).toBe(intervalMs);
});
