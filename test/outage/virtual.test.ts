import { afterEach, describe, expect, test } from 'vitest';
import { Random } from '../../sim/random.ts';
import { type Dependency, metastable, oneBadWorker, switched } from '../gate/dependency.ts';
import { busiest, sum } from '../gate/world.ts';
import { Fleet, type FleetOptions } from './fleet.ts';

/*
 * Outages with real workers and the model store, in virtual time. The same at the level of the state machine alone, with
 * more cases, is in test/gate.
 */

const PEAK = 60;
let fleets: Fleet[] = [];
afterEach(async () => {
  for (const fleet of fleets) await fleet.close();
  fleets = [];
});

/** `isDown` is asked with the second since the fleet began. */
async function open(
  isDown: (second: number) => boolean,
  options: Partial<FleetOptions> = {},
  kind: 'down' | 'unavailable' = 'down',
): Promise<Fleet> {
  let startedAt = 0;
  const dependency = switched((now) => isDown((now - startedAt) / 1_000), kind);
  const fleet = await Fleet.open({ dependency, ...options });
  startedAt = fleet.start;
  fleets.push(fleet);
  return fleet;
}

function print(what: string, figures: object): void {
  console.info(what, JSON.stringify(figures));
}

describe('10,000 jobs wait while the dependency is down for 10 minutes', () => {
  async function outage(resource: string | false): Promise<Fleet> {
    const fleet = await open((second) => second > 30 && second <= 630, { resource });
    await fleet.run(30, PEAK);
    await fleet.enqueue(10_000);
    await fleet.run(600);
    return fleet;
  }

  test('without a gate most die; behind a gate none does, and next to no call is made', async () => {
    const without = await outage(false);
    const callsWithout = sum(without.calls, 30, 630);
    print('10 min outage, no gate', { calls: callsWithout, dead: without.dead });
    expect(without.dead).toBeGreaterThan(9_000);

    const fleet = await outage('smtp');
    const calls = sum(fleet.calls, 30, 630);
    expect(fleet.dead).toBe(0);
    const drainedAfter = await fleet.runUntilDone(1_200);
    const figures = {
      calls,
      drainedAfter,
      ideal: Math.round(10_000 / PEAK),
      busiest: busiest(fleet.calls, 630, 930, 10),
      attempts: fleet.mostAttempts,
      runs: fleet.mostRuns,
      changes: fleet.changes,
    };
    print('10 min outage, gate', figures);
    expect(calls).toBeLessThan(callsWithout / 100);
    expect(fleet.completed).toBe(fleet.enqueued);
    expect(fleet.mostAttempts).toBeLessThanOrEqual(2);
    expect(figures.busiest).toBeLessThanOrEqual(1.5 * PEAK);
    expect(drainedAfter).toBeLessThanOrEqual(1.5 * figures.ideal);
    // Nothing is left to do, and still the gate is seen to close.
    await fleet.run(30);
    expect(fleet.changes.at(-1)).toBe('resource smtp closed: rate not used');
  });

  test('with arrivals at 0.7 of the peak the backlog drains', async () => {
    const fleet = await outage('smtp');
    const curve: number[] = [];
    for (let i = 0; i < 24 && (i === 0 || (curve.at(-1) as number) > PEAK); i++) {
      await fleet.run(30, 0.7 * PEAK);
      curve.push(fleet.enqueued - fleet.completed);
    }
    print('arrivals at 0.7 of the peak: backlog every 30 s', curve);
    expect(curve.at(-1)).toBeLessThanOrEqual(PEAK);
    expect(fleet.dead).toBe(0);
    expect(busiest(fleet.calls, 630, 930, 10)).toBeLessThanOrEqual(1.5 * PEAK);
  });
});

describe('a metastable dependency with 10% headroom', () => {
  const LOAD = 30;
  async function overload(resource: string | false): Promise<Fleet> {
    const random = new Random(7);
    let startedAt = 0;
    const isDown = (now: number): boolean => now - startedAt > 60_000 && now - startedAt <= 70_000;
    const dependency = metastable(LOAD * 1.1, random, isDown);
    const fleet = await Fleet.open({ dependency, resource, concurrency: 60 });
    fleets.push(fleet);
    startedAt = fleet.start;
    await fleet.run(70, LOAD);
    return fleet;
  }

  test('recovers behind a gate with a retry budget, and not without', async () => {
    const without = await overload(false);
    await without.run(170, LOAD);
    const servedWithout = sum(without.done, 180, 240) / 60;
    const fleet = await overload('smtp');
    const drained: number[] = [];
    for (let i = 0; i < 30 && (i === 0 || (drained.at(-1) as number) > LOAD); i++) {
      await fleet.run(60, LOAD);
      drained.push(fleet.enqueued - fleet.completed - fleet.dead);
    }
    print('metastable', { servedWithout, deadWithout: without.dead, dead: fleet.dead, backlog: drained });
    expect(servedWithout).toBeLessThan(0.1 * LOAD);
    expect(fleet.dead).toBe(0);
    expect(drained.at(-1)).toBeLessThanOrEqual(LOAD);
  });
});

describe('nothing is set: the standard policy and no resource', () => {
  test.each([
    [300, 'down'],
    [1, 'down'],
    [300, 'unavailable'],
    [1, 'unavailable'],
  ] as const)('%i jobs survive an outage of two minutes, %s', async (jobs, kind) => {
    const fleet = await open((second) => second <= 120, {}, kind);
    await fleet.enqueue(jobs);
    await fleet.run(120);
    expect(fleet.dead).toBe(0);
    const doneAfter = await fleet.runUntilDone(120);
    print(`no resource, ${jobs} jobs, ${kind}`, {
      doneAfter,
      attempts: fleet.mostAttempts,
      calls: sum(fleet.calls, 0, 120),
    });
    expect(fleet.completed).toBe(jobs);
    expect(doneAfter).toBeLessThanOrEqual(60);
  });

  test.each([2, 3])('a lone job that may run %i times survives an outage of two minutes', async (maxAttempts) => {
    const fleet = await open((second) => second <= 120, { retry: { maxAttempts } });
    await fleet.enqueue(1);
    await fleet.run(120);
    await fleet.runUntilDone(60);
    expect([fleet.dead, fleet.completed]).toEqual([0, 1]);
  });

  test('a job that was fine a moment ago survives too', async () => {
    const fleet = await open((second) => second > 20 && second <= 140);
    await fleet.run(20, 1);
    await fleet.enqueue(1);
    await fleet.run(120);
    await fleet.runUntilDone(60);
    expect(fleet.dead).toBe(0);
    expect(fleet.completed).toBe(fleet.enqueued);
  });

  test('a job that fails by its own fault dies after its attempts', async () => {
    const fleet = await Fleet.open({ dependency: { call: () => ({ kind: 'bug', durationMs: 5 }) } });
    fleets.push(fleet);
    await fleet.enqueue(1);
    await fleet.runUntilDone(60);
    expect(fleet.dead).toBe(1);
    expect(sum(fleet.calls, 0, 60)).toBe(4);
  });

  test('a job that may run once runs once', async () => {
    const fleet = await open(() => true, { retry: { maxAttempts: 1 } });
    await fleet.enqueue(20);
    await fleet.runUntilDone(60);
    expect(fleet.dead).toBe(20);
    expect(sum(fleet.calls, 0, 60)).toBe(20);
  });

  test('webhooks of which 60% of the hosts are dead for good: jobs to the others are not delayed', async () => {
    async function waits(deadHosts: number): Promise<number> {
      const dependency: Dependency = {
        call: (_, __, ___, n) =>
          n % 10 < deadHosts ? { kind: 'down', durationMs: 5 } : { kind: 'ok', durationMs: 50 },
      };
      const fleet = await Fleet.open({ dependency, concurrency: 50 });
      fleets.push(fleet);
      await fleet.run(120, 30);
      return percentile(
        fleet.waits.filter(({ input }) => input % 10 >= 6).map(({ waitedMs }) => waitedMs),
        0.99,
      );
    }
    const calm = await waits(0);
    const beside = await waits(6);
    print('60% of the hosts dead: p99 wait of the others', { calm, beside });
    expect(beside).toBeLessThanOrEqual(Math.max(1.2 * calm, 5));
  });
});

describe('behind a gate', () => {
  test.each([2, 3])('a lone job with %i attempts survives an outage', async (maxAttempts) => {
    const fleet = await open((second) => second <= 120, { resource: 'smtp', retry: { maxAttempts } });
    await fleet.enqueue(1);
    await fleet.run(120);
    await fleet.runUntilDone(120);
    expect(fleet.completed).toBe(1);
  });

  test.each([
    ['down', 30],
    ['unavailable', 30],
    ['down', 2],
  ] as const)(
    'the gate decides, not the backoff: %s for three hours, %i jobs with a base of 10 minutes',
    async (kind, jobs) => {
      const hours = 3 * 3_600;
      const backoff = { kind: 'exponential', base: '10m', max: '24h' } as const;
      const retry = { backoff, maxAttempts: 20 };
      const fleet = await open((second) => second >= 10 && second <= hours, { resource: 'smtp', retry }, kind);
      await fleet.run(10, 1);
      await fleet.enqueue(jobs);
      await fleet.wait(hours - 10);
      const calls = sum(fleet.calls, 10, hours);
      const doneAfter = await fleet.runUntilDone(4 * 3_600);
      print(`${jobs} jobs with a base of 10 minutes`, { calls, doneAfter, attempts: fleet.mostAttempts });
      expect([fleet.dead, fleet.completed]).toEqual([0, fleet.enqueued]);
      expect(doneAfter).toBeLessThanOrEqual(120);
      // The probes of a named gate are 240 an hour on average.
      expect(calls).toBeLessThanOrEqual(jobs + 3 * 260);
    },
  );

  test('one job with a Retry-After of its own neither starves the others nor runs for ever', async () => {
    const dependency: Dependency = {
      call: (_, __, ___, n) =>
        n === 0 ? { kind: 'too-many', durationMs: 5, retryAfterMs: 5_000 } : { kind: 'ok', durationMs: 50 },
    };
    const fleet = await Fleet.open({ dependency, resource: 'api' });
    fleets.push(fleet);
    await fleet.run(120, 5);
    print('one job with its own Retry-After', { done: fleet.completed, of: fleet.enqueued, dead: fleet.dead });
    expect(fleet.dead).toBe(1);
    expect(fleet.completed).toBeGreaterThan(0.95 * fleet.enqueued);
  });

  test('one Retry-After in the first seconds of traffic does not slow the queue down for minutes', async () => {
    let asked = false;
    const dependency: Dependency = {
      call: () => {
        if (asked || fleet.second < 12) return { kind: 'ok', durationMs: 50 };
        asked = true;
        return { kind: 'too-many', durationMs: 5, retryAfterMs: 5_000 };
      },
    };
    const fleet = await Fleet.open({ dependency, resource: 'api' });
    fleets.push(fleet);
    await fleet.run(60, 10);
    const waiting = fleet.enqueued - fleet.completed;
    print('a Retry-After in young traffic', { waiting, changes: fleet.changes });
    expect(waiting).toBeLessThan(20);
  });

  test('one worker without DNS among three neither shuts the gate nor kills a job', async () => {
    const fleet = await Fleet.open({ dependency: oneBadWorker(1), resource: 'smtp', concurrency: 2 });
    fleets.push(fleet);
    await fleet.run(300, PEAK);
    await fleet.runUntilDone(120);
    print('one bad worker of three', {
      failed: sum(fleet.failed, 0, 420),
      dead: fleet.dead,
      changes: fleet.changes.length,
    });
    expect(fleet.dead).toBe(0);
    expect(fleet.completed).toBe(fleet.enqueued);
    expect(fleet.changes.filter((change) => change.includes('opened'))).toEqual([]);
    expect(sum(fleet.failed, 0, 30)).toBeGreaterThan(5);
    expect(sum(fleet.failed, 30, 300)).toBeLessThan(100);
  });

  test("an operator's pin during the ramp wins until it is taken away", async () => {
    const fleet = await open((second) => second > 30 && second <= 60, { resource: 'smtp' });
    await fleet.run(30, PEAK);
    await fleet.enqueue(5_000);
    await fleet.run(30);
    while ((await fleet.gate())?.state.phase !== 'ramp') await fleet.run(1);
    await fleet.mulligan.gates.open('smtp', { by: 'anna' });
    await fleet.run(2);
    const pinnedAt = fleet.second;
    await fleet.run(60);
    expect(sum(fleet.calls, pinnedAt, pinnedAt + 60)).toBe(0);
    await fleet.mulligan.gates.unpin('smtp', { by: 'anna' });
    await fleet.runUntilDone(600);
    expect(fleet.completed).toBe(fleet.enqueued);
    const { history } = await fleet.mulligan.gates.show('smtp');
    expect(history.filter(({ who }) => who === 'anna').map(({ change }) => change)).toEqual(['unpinned', 'pinned']);
  });

  test('the wall clock of one worker steps by an hour, forth and back: only the time of the store counts', async () => {
    const fleet = await open((second) => second > 30 && second <= 90, { resource: 'smtp', concurrency: 4 });
    await fleet.run(30, PEAK);
    await fleet.enqueue(1_000);
    for (const stepMs of [3_600_000, -3_600_000, 0]) {
      fleet.wallAheadMs[1] = stepMs;
      await fleet.run(25);
    }
    const drainedAfter = await fleet.runUntilDone(300);
    print('a wall clock that steps', { drainedAfter, changes: fleet.changes });
    expect(fleet.dead).toBe(0);
    expect(fleet.completed).toBe(fleet.enqueued);
    expect(busiest(fleet.calls, 90, 300, 10)).toBeLessThanOrEqual(1.5 * PEAK);
  });

  test('a worker that is killed with its probe does not keep the gate shut', async () => {
    const fleet = await open((second) => second > 30 && second <= 60, { resource: 'smtp' });
    await fleet.run(30, PEAK);
    await fleet.enqueue(100);
    // From now on a probe never ends: its worker is gone.
    fleet.hangsFrom = 61;
    await fleet.run(31);
    while (sum(fleet.calls, 61, fleet.second + 1) === 0) await fleet.run(1);
    fleet.hangsFrom = null;
    await fleet.runUntilDone(300);
    expect(fleet.completed + fleet.hung).toBe(fleet.enqueued);
    expect(fleet.hung).toBe(1);
  });

  test('keys of one parent: when many hosts fail at once, each other one is shut at its first failure', async () => {
    let startedAt = 0;
    const down = (now: number): boolean => now - startedAt > 30_000 && now - startedAt <= 90_000;
    const fleet = await Fleet.open({
      dependency: switched(down),
      resource: (n: number) => ['webhook', `host-${n % 60}`],
      concurrency: 50,
    });
    fleets.push(fleet);
    startedAt = fleet.start;
    await fleet.run(90, PEAK);
    print('60 hosts behind one parent', {
      calls: sum(fleet.calls, 30, 90),
      parent: fleet.changes.filter((c) => c.startsWith('parent')),
    });
    expect(fleet.changes.some((change) => change.startsWith('parent webhook opened'))).toBe(true);
    await fleet.runUntilDone(1_200);
    expect(fleet.dead).toBe(0);
    expect(fleet.completed).toBe(fleet.enqueued);
  });
});

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
}
