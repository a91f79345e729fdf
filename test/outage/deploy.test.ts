import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { MemoryStore } from '../../src/store/memory/store.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { type Beside, besides, type Gate, gates, rollingDeploy, type Seen } from './rolling-deploy.ts';
import { sharedStore } from './shared-store.ts';

/*
 * What a user sees of an outage of 80 s in the middle of a rolling deploy: see rolling-deploy.ts. MULLIGAN_SEEDS says how many
 * seeds are played in virtual time; `npm run outage:soak` plays it three times in real time, too.
 */
const seeds = Array.from({ length: Number(process.env.MULLIGAN_SEEDS ?? 3) }, (_, index) => index + 1);
const isSoak = process.env.MULLIGAN_OUTAGE === 'soak';

const FIRST_AT_MOST_MS = 30_000;
const FIRST_MEDIAN_MS = 15_000;
/** How much later than without the old worker chance alone may make the median: half of the longest wait between two probes. */
const CHANCE_MS = 10_000;

function print(what: string, all: readonly Seen[]): void {
  const seconds = (of: (seen: Seen) => number) => all.map((seen) => (of(seen) / 1_000).toFixed(1)).join(' ');
  const first = seconds(({ firstMs }) => firstMs);
  const last = seconds(({ lastMs }) => lastMs);
  const calls = all.map(({ callsWhileDown }) => callsWhileDown).join(' ');
  const handedBack = all.map((seen) => seen.handedBack).join(' ');
  console.info(`${what}: first ${first} | last ${last} | calls while down ${calls} | handed back ${handedBack}`);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const firsts = (all: readonly Seen[]): number[] => all.map(({ firstMs }) => firstMs);

/** Nothing is dead, nothing is left, nothing came twice; and the first delivery does not keep anyone waiting. */
function expectDelivered(all: readonly Seen[]): void {
  for (const seen of all) expect(seen).toMatchObject({ dead: 0, undelivered: 0, deliveredTwice: 0 });
  expect(Math.max(...firsts(all))).toBeLessThanOrEqual(FIRST_AT_MOST_MS);
}

async function inVirtualTime(seed: number, gate: Gate, beside: Beside): Promise<Seen> {
  const clock = new VirtualClock({ seed });
  const store = new MemoryStore({ clock });
  const sleep = (ms: number) => clock.advance(ms);
  return rollingDeploy({ clock, sleep, open: async () => sharedStore(store), gate, beside });
}

describe.each(gates)('a receiver is down for 80 s in the middle of a rolling deploy, behind %s', (gate) => {
  const timeout = 120_000 + 20_000 * seeds.length;
  test('its first delivery comes soon after it is back, no later with an old worker beside', { timeout }, async () => {
    const seen = new Map<Beside, Seen[]>();
    for (const beside of besides) {
      const all: Seen[] = [];
      for (const seed of seeds) all.push(await inVirtualTime(seed, gate, beside));
      print(`${gate}, beside: ${beside}`, all);
      seen.set(beside, all);
    }
    for (const all of seen.values()) expectDelivered(all);
    expect(median(firsts([...seen.values()].flat()))).toBeLessThan(FIRST_MEDIAN_MS);
    const alone = median(firsts(seen.get('none') as Seen[]));
    for (const all of seen.values()) expect(median(firsts(all))).toBeLessThanOrEqual(alone + CHANCE_MS);
  });
});

describe.runIf(isSoak)('the same in real time, three times', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mulligan-deploy-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const databases = new AsyncDisposableStack();
  afterAll(() => databases.disposeAsync());
  let files = 0;
  const stores: [string, () => Promise<string>][] = [
    ['SQLite', async () => `sqlite:${join(folder, `${files++}.db`)}`],
    ['PostgreSQL', async () => databases.use(await TestDatabase.create(inject('postgresUrl'))).url],
  ];
  const sleep = (ms: number) => new Promise<void>((resolve) => void systemClock.after(ms, resolve));
  const cases = stores.flatMap(([name, target]) => gates.map((gate) => [name, gate, target] as const));

  test.each(cases)('%s, behind %s', { timeout: 900_000 }, async (name, gate, target) => {
    const run = async (beside: Beside): Promise<Seen> => {
      const url = await target();
      return rollingDeploy({ clock: systemClock, sleep, open: async () => url, gate, beside });
    };
    const all = await Promise.all((['earlier version', 'unknown name', 'schema that rejects'] as const).map(run));
    print(`${name}, ${gate}, in real time`, all);
    expectDelivered(all);
  });
});
