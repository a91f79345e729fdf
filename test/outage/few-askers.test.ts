import { afterEach, describe, expect, test } from 'vitest';
import type { Answer, Dependency } from '../gate/dependency.ts';
import { sum } from '../gate/world.ts';
import { Fleet } from './fleet.ts';

/*
 * Jobs that are asked to wait, behind one gate with others, with real workers in virtual time.
 */

const RATE = 80;
const ok: Answer = { kind: 'ok', durationMs: 50 };
const busy: Answer = { kind: 'too-many', durationMs: 50, retryAfterMs: 5_000 };

let fleets: Fleet[] = [];
afterEach(async () => {
  for (const fleet of fleets) await fleet.close();
  fleets = [];
});

async function open(dependency: Dependency): Promise<Fleet> {
  const fleet = await Fleet.open({ dependency, resource: 'dep' });
  fleets.push(fleet);
  return fleet;
}

/** One input in a hundred is asked to wait: by its own quota, at its first call or at each. */
const isAsker = (input: number): boolean => input % 100 === 50;
function askingFirst(): Dependency {
  const asked = new Set<number>();
  return {
    call(_, __, ___, input) {
      if (!isAsker(input) || asked.has(input)) return ok;
      asked.add(input);
      return busy;
    },
  };
}
const askingAlways: Dependency = { call: (_, __, ___, input) => (isAsker(input) ? { ...busy, retryAfterMs: 0 } : ok) };

/** How the others fare for 25 s. */
async function othersOf(dependency: Dependency): Promise<{ started: number; medianMs: number }> {
  const fleet = await open(dependency);
  await fleet.run(25, RATE);
  const waits = fleet.waits.filter(({ input }) => !isAsker(input)).map(({ waitedMs }) => waitedMs);
  waits.sort((a, b) => a - b);
  return { started: waits.length, medianMs: waits[waits.length >> 1] as number };
}

describe('one job in a hundred is asked to wait, and the others start as if it was not there', () => {
  test.each([
    ['at its first call, for 5 s', askingFirst()],
    ['at each call, without a header', askingAlways],
  ])('%s', async (_, dependency) => {
    const healthy = await othersOf({ call: () => ok });
    const others = await othersOf(dependency);
    console.info('others', JSON.stringify({ healthy, others }));
    expect(others.started).toBeGreaterThanOrEqual(0.98 * healthy.started);
    expect(others.medianMs).toBeLessThanOrEqual(healthy.medianMs + 50);
  });
});

test('an outage that answers Retry-After to all holds them within a few calls', async () => {
  const dependency: Dependency = {
    call(now) {
      const second = (now - start) / 1_000;
      return second > 30 && second <= 35 ? { ...busy, retryAfterMs: 35_000 - second * 1_000 + 1_000 } : ok;
    },
  };
  const fleet = await open(dependency);
  const { start } = fleet;
  await fleet.run(36, RATE);
  console.info('calls in the outage', sum(fleet.calls, 30, 35), fleet.changes);
  expect(sum(fleet.failed, 30, 36)).toBeLessThanOrEqual(20);
  expect(fleet.changes).toEqual(['resource dep held: retry-after']);
  await fleet.runUntilDone(120);
  expect([fleet.completed, fleet.dead]).toEqual([fleet.enqueued, 0]);
});
