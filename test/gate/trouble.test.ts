import { describe, expect, test } from 'vitest';
import { Random } from '../../sim/random.ts';
import { pin, unpin } from '../../src/gate/index.ts';
import { halfBroken, oneBadWorker, poisoned, quota, switched } from './dependency.ts';
import { busiest, sum, World } from './world.ts';

/* Issue 13, must hold 5, at the level of the state machine: what is neither up nor down. */

const START = 1_000_000;
const seconds = (now: number): number => (now - START) / 1_000;
const never = (): boolean => false;

function print(what: string, figures: object): void {
  console.info(what, JSON.stringify(figures));
}

test.each([5, 15, 60])(
  'a dependency that flaps every %i s burns no attempts, and the backlog drains after it',
  (period) => {
    const isDown = (now: number): boolean =>
      seconds(now) > 60 && seconds(now) <= 1_860 && Math.floor(seconds(now) / period) % 2 === 1;
    const world = new World({ dependency: switched(isDown), gate: true, arrivals: () => 60 });
    world.runFor(1_860);
    const served = sum(world.done, 60, 1_860) / (60 * 1_800);
    const failedPerHour = sum(world.failed, 60, 1_860) * 2;
    world.runUntil(({ gate, waiting }) => gate.phase === 'closed' && waiting < 60, 3_600);
    print(`flapping ${period} s`, {
      served,
      failedPerHour,
      drainedAfter: world.second - 1_860,
      spent: world.largestSpent,
    });
    expect(world.dead).toBe(0);
    expect(world.largestSpent).toBeLessThanOrEqual(2);
    expect(failedPerHour).toBeLessThan(5_000);
    expect(world.gate.phase).toBe('closed');
  },
);

describe('a dependency that fails 30% of the calls', () => {
  test('does not trip the gate, and the budget bounds the retries', () => {
    const dependency = halfBroken(0.3, new Random(5));
    const world = new World({ dependency, gate: true, arrivals: () => 60, concurrency: 60 });
    world.runFor(900);
    const retries = sum(world.retried, 60, 900) / 840;
    const served = sum(world.done, 60, 900) / 840;
    print('30% errors', { retries, served, opened: world.count('opened') });
    expect(world.count('opened')).toBe(0);
    // The floor is 10% of the proven peak; first attempts that succeed pay the rest.
    expect(retries).toBeLessThanOrEqual(0.2 * served + Math.max(1, 0.1 * world.gate.peak.rate) + 0.1);
    expect(served).toBeGreaterThan(45);
  });

  test('does not keep a ramp slow after an outage: the failures do not come from the rate', () => {
    const isDown = (now: number): boolean => seconds(now) > 60 && seconds(now) <= 120;
    const dependency = halfBroken(0.3, new Random(5), isDown);
    const world = new World({ dependency, gate: true, arrivals: () => 60, concurrency: 60 });
    world.runFor(900);
    const served = sum(world.done, 300, 900) / 600;
    print('30% errors after an outage', { served, opened: world.count('opened'), limit: world.gate.ramp?.limit });
    expect(served).toBeGreaterThan(40);
  });
});

describe('slow traffic of one job a minute', () => {
  test('survives an outage of an hour without a dead job', () => {
    const isDown = (now: number): boolean => seconds(now) > 600 && seconds(now) <= 4_200;
    const world = new World({ dependency: switched(isDown), gate: true, arrivals: () => 1 / 60 });
    world.runFor(600);
    world.runFor(3_600);
    const calls = sum(world.calls, 600, 4_200);
    world.runUntil(({ completed, enqueued }) => completed === enqueued, 600);
    const drainedAfter = world.second - 4_200;
    world.runFor(120);
    print('one job a minute, 1 h outage', { calls, drainedAfter, rules: world.events.map(({ rule }) => rule) });
    expect(world.dead).toBe(0);
    // The probes of a named gate are 240 an hour on average.
    expect(calls).toBeLessThan(260);
    expect(drainedAfter).toBeLessThan(180);
    expect(world.gate.phase).toBe('closed');
  });

  test('a healthy dependency starts every job at once', () => {
    const world = new World({ dependency: switched(never), gate: true, arrivals: () => 1 / 60 });
    world.runFor(3_600);
    expect(world.completed).toBeGreaterThan(55);
    expect(world.longestWaitMs).toBeLessThan(200);
  });
});

test('one worker without DNS among three: the gate stays closed, and that worker runs next to nothing', () => {
  const world = new World({ dependency: oneBadWorker(1), gate: true, arrivals: () => 60, concurrency: 20 });
  world.runFor(600);
  const failed = sum(world.failed, 0, 600);
  const without = new World({ dependency: oneBadWorker(1), gate: false, arrivals: () => 60, concurrency: 20 });
  without.runFor(600);
  const suspects = world.count('worker-suspect');
  print('one bad worker of three', {
    failed,
    dead: world.dead,
    suspects,
    failedWithout: sum(without.failed, 0, 600),
    deadWithout: without.dead,
  });
  expect(world.count('opened')).toBe(0);
  expect(world.dead).toBe(0);
  expect(failed).toBeLessThan(200);
  expect(sum(world.done, 540, 600)).toBeGreaterThan(55 * 60);
});

test('arrivals that double during the ramp: the rate creeps up until the gate closes', () => {
  const isDown = (now: number): boolean => seconds(now) > 60 && seconds(now) <= 120;
  const world = new World({
    dependency: switched(isDown),
    gate: true,
    arrivals: (now) => (seconds(now) > 130 ? 120 : 60),
  });
  world.runFor(120);
  world.runUntil(({ gate, waiting }) => gate.phase === 'closed' && waiting < 200, 5_000);
  const figures = { closedAfter: world.second - 120, firstFiveMinutes: busiest(world.calls, 120, 420, 10) };
  print('arrivals doubled', { ...figures, later: busiest(world.calls, 420, world.second, 10) });
  expect(world.gate.phase).toBe('closed');
  expect(figures.firstFiveMinutes).toBeLessThanOrEqual(90);
  world.runFor(60);
  expect(busiest(world.calls, 420, world.second, 10)).toBeLessThan(300);
});

test('a probe worker that is killed, again and again, does not keep the gate open', () => {
  const isDown = (now: number): boolean => seconds(now) > 60 && seconds(now) <= 120;
  const world = new World({ dependency: switched(isDown), gate: true, arrivals: () => 10, workers: 5 });
  world.runFor(120);
  let killed = 0;
  world.runUntil(({ gate, workers }) => {
    const probing = workers.find(({ running, isDead }) => !isDead && running.length > 0);
    if (gate.phase === 'open' && probing !== undefined && killed < 3) {
      world.kill(probing);
      killed++;
    }
    return gate.phase === 'ramp';
  }, 600);
  print('probe workers killed', { killed, recoveringAfter: world.second - 120 });
  expect(killed).toBe(3);
  expect(world.second - 120).toBeLessThan(60 + 4 * 40);
});

test('jobs that always fail alone do not keep the gate open, and they die', () => {
  const isDown = (now: number): boolean => seconds(now) > 60 && seconds(now) <= 120;
  const isPoison = (id: string): boolean => id === 'job-601' || id === 'job-602' || id === 'job-603';
  const world = new World({
    dependency: poisoned(isPoison, isDown),
    gate: true,
    arrivals: (now) => (seconds(now) > 125 ? 0.1 : 10),
  });
  world.runFor(600);
  print('three poisonous jobs', { dead: world.dead, events: world.events.map(({ to, rule }) => `${to} ${rule}`) });
  expect(world.gate.phase).toBe('closed');
  expect(world.dead).toBe(3);
  expect(world.completed).toBeGreaterThan(world.enqueued - 10);
});

test('a quota: a 429 holds all jobs, no attempt is spent, and the rate settles near the quota', () => {
  const world = new World({ dependency: quota(40, 2_000), gate: true, arrivals: () => 20 });
  world.runFor(60);
  world.enqueue(2_000);
  world.runFor(400);
  const throttled = sum(world.failed, 60, 460);
  print('quota of 40/s', { throttled, served: sum(world.done, 60, 460) / 400, waiting: world.waiting });
  expect(world.dead).toBe(0);
  expect(world.count('opened')).toBe(0);
  expect(world.waiting).toBeLessThan(100);
  expect(throttled).toBeLessThan(300);
});

test('an operator’s pin during the ramp stops everything until it is taken away', () => {
  const isDown = (now: number): boolean => seconds(now) > 60 && seconds(now) <= 120;
  const world = new World({ dependency: switched(isDown), gate: true, arrivals: () => 60 });
  world.runUntil(({ gate, second }) => second > 120 && gate.phase === 'ramp', 300);
  world.gate = pin(world.gate, 'open', 'anna', world.now, world.random.next).state;
  world.runFor(1);
  const from = world.second;
  world.runFor(60);
  expect(sum(world.calls, from, from + 60)).toBe(0);
  world.gate = unpin(world.gate, 'anna', world.now).state;
  world.runUntil(({ gate }) => gate.phase === 'closed', 1_200);
  expect(world.gate.phase).toBe('closed');
  expect(world.dead).toBe(0);
});

test('a store clock that steps back by ten minutes keeps no gate open', () => {
  const isDown = (now: number): boolean => now < START + 120_000 && now > START + 60_000;
  const world = new World({ dependency: switched(isDown), gate: true, arrivals: () => 10 });
  world.runFor(90);
  expect(world.gate.phase).toBe('open');
  const before = world.gate;
  world.now -= 600_000;
  world.gate = before;
  const dependencyIsUp = !isDown(world.now);
  expect(dependencyIsUp).toBe(true);
  world.runUntil(({ gate }) => gate.phase === 'ramp', 60);
  expect(world.gate.phase).toBe('ramp');
});
