import { describe, expect, test } from 'vitest';
import { Gate, jobs } from '../../test/gate/facts.ts';
import { fastStreak, rampStreak } from './trip.ts';

const phaseAfter = (gate: Gate): string =>
  gate.state.phase === 'open' ? (gate.events.at(-1)?.rule ?? '') : gate.state.phase;

describe('fast', () => {
  test('10 failures in a row from 5 jobs trip, 9 do not', () => {
    expect(phaseAfter(new Gate().report({ environment: 9 }))).toBe('closed');
    expect(phaseAfter(new Gate().report({ environment: 9 }).report({ environment: 1 }))).toBe('fast');
  });

  test('4 jobs that fail again and again do not', () => {
    expect(phaseAfter(new Gate().serve(20, 10).report({ environment: 60, jobs: jobs(4) }))).toBe('closed');
  });

  test('where failures are usual the streak must be longer than chance makes it', () => {
    const streakAt = (share: number, perSecond: number): number => {
      const runs = 30 * perSecond;
      return fastStreak({ alive: runs * (1 - share), environment: runs * share + 10, streak: 10 });
    };
    expect([0, 0.1, 0.2, 0.3, 0.4].map((share) => streakAt(share, 60))).toEqual([10, 10, 10, 13, 16]);
    expect([1, 60, 1_000].map((perSecond) => streakAt(0.3, perSecond))).toEqual([10, 13, 15]);
    expect(fastStreak({ alive: 10, environment: 99, streak: 0 })).toBe(30);
    expect(fastStreak({ alive: 0, environment: 99, streak: 0 })).toBe(10);
  });

  test('a sign of life starts the count again', () => {
    expect(
      phaseAfter(new Gate().serve(60, 10).report({ environment: 9 }).report({ alive: 1 }).report({ environment: 9 })),
    ).toBe('closed');
  });
});

describe('ratio', () => {
  const mixed = (alive: number, environment: number): string =>
    phaseAfter(new Gate().report({ alive, environment, tail: 0, jobs: jobs(9) }));

  test.each([
    [2, 10, 'ratio'],
    [4, 10, 'closed'],
    [10, 10, 'closed'],
    [40, 60, 'ratio'],
    [70, 30, 'closed'],
    [0, 9, 'closed'],
  ])('%i alive and %i failed: %s', (alive, environment, phase) => {
    expect(mixed(alive, environment)).toBe(phase);
  });

  test('failures of few jobs do not trip', () => {
    expect(phaseAfter(new Gate().report({ alive: 4, environment: 40, tail: 0, jobs: jobs(4) }))).toBe('closed');
  });

  test('failures that are older than the window do not count', () => {
    const gate = new Gate().report({ alive: 2, environment: 9, tail: 0, jobs: jobs(9) }).wait(36_000);
    expect(phaseAfter(gate.report({ alive: 2, environment: 9, tail: 0, jobs: jobs(9) }))).toBe('closed');
  });
});

describe('slow traffic', () => {
  const failing = (gate: Gate, count: number, everyMs: number): Gate => {
    for (let i = 0; i < count; i++) gate.wait(everyMs).report({ environment: 1, jobs: [1 << i, 0] });
    return gate;
  };

  test('5 failures of 3 jobs over 10 s trip although signs of life are near', () => {
    const gate = failing(new Gate().report({ alive: 1 }), 5, 3_000);
    expect(phaseAfter(gate)).toBe('slow');
  });

  test('within less than 10 s they do not', () => {
    expect(phaseAfter(failing(new Gate().report({ alive: 1 }), 5, 1_000))).toBe('closed');
  });

  test('in busy traffic they do not', () => {
    expect(phaseAfter(failing(new Gate().report({ alive: 50 }), 5, 3_000))).toBe('closed');
  });
});

describe('a lone job', () => {
  const alone = (gate: Gate): Gate => {
    for (let i = 0; i < 4; i++) gate.wait(700).report({ environment: 1, jobs: [1, 0] });
    return gate;
  };

  test('trips by its own streak once that has lasted, when a claim asks', () => {
    const gate = alone(new Gate()).wait(5_000);
    gate.admit();
    expect(phaseAfter(gate)).toBe('closed');
    gate.wait(5_000);
    expect(gate.admit()).toBe(0);
    expect(phaseAfter(gate)).toBe('lone');
  });

  test('does not while another job has shown a sign of life within the window', () => {
    const gate = alone(new Gate().report({ alive: 1 })).wait(10_000);
    gate.admit();
    expect(phaseAfter(gate)).toBe('closed');
  });
});

describe('one bad worker', () => {
  test('does not trip while another one sees signs of life', () => {
    expect(phaseAfter(new Gate().report({ alive: 1, worker: 2 }).report({ environment: 100, worker: 1 }))).toBe(
      'closed',
    );
  });

  test('two failing workers trip', () => {
    const gate = new Gate().report({ alive: 1, worker: 2 }).report({ environment: 100, worker: 1 });
    expect(phaseAfter(gate.report({ environment: 1, worker: 3 }))).toBe('fast');
  });

  test('the only worker that reports trips', () => {
    expect(phaseAfter(new Gate().report({ environment: 10, worker: 1 }))).toBe('fast');
  });
});

test('a ramp fails at shorter streaks, the shorter the slower it is', () => {
  const streaks = [1, 3, 60, 600].map((limit) => rampStreak({ limit, background: 0 }));
  expect(streaks).toEqual([5, 5, 8, 10]);
  expect(rampStreak({ limit: 60, background: 0.3 })).toBe(13);
});
