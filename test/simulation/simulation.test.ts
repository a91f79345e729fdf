import { describe, expect, inject, it } from 'vitest';
import { interleavedPostgres, memory, postgres, sqlite } from '../../sim/engines.ts';
import { exhaust } from '../../sim/exhaustive.ts';
import { randomScenario } from '../../sim/scenario.ts';
import { type Simulated, simulate } from '../../sim/simulate.ts';

/** Long runs are made with `npm run sim`; these are for every change. */
const SEEDS = { memory: 40, sqlite: 2, postgres: 2 };
/** The second seed is a long one, and a server takes its time over it. */
const FIRST = { memory: 1, sqlite: 1, postgres: 3 };
/** Of the small scope, every n-th run; `npm run sim -- --exhaustive --engine postgres` has them all. */
const EVERY = { memory: 1, sqlite: 23, postgres: 73 };
/** Every n-th seed is replayed. */
const REPLAYED = 3;
const engines = { memory, sqlite, postgres: postgres(inject('postgresUrl')) };
const names = Object.keys(SEEDS) as (keyof typeof SEEDS)[];
const PARTS = 5;

function explain({ scenario, violations }: Simulated): string[] {
  return violations.slice(0, 5).map(({ guarantee, text }) => `seed ${scenario.seed}, guarantee ${guarantee}: ${text}`);
}

describe.each(names)('a fleet on the %s store', (name) => {
  const parts = Math.min(PARTS, SEEDS[name]);
  const perPart = SEEDS[name] / parts;
  for (let part = 0; part < parts; part++) {
    const from = FIRST[name] + part * perPart;
    it(`keeps every promise under faults of all kinds, seeds ${from} to ${from + perPart - 1}, and replays`, async () => {
      for (let seed = from; seed < from + perPart; seed++) {
        const result = await simulate(randomScenario(seed), engines[name]);
        expect(explain(result)).toEqual([]);
        if (seed % REPLAYED !== 0) continue;
        const again = await simulate(randomScenario(seed), engines[name]);
        expect(again.history.hash(), `seed ${seed} gives another trace the second time`).toBe(result.history.hash());
      }
    });
  }
});

describe('a fleet on PostgreSQL whose statements overlap and whose transactions commit late', () => {
  const engine = interleavedPostgres(inject('postgresUrl'));
  const seeds = [2, 3];

  it.each(seeds)('keeps every promise, seed %i', async (seed) => {
    expect(explain(await simulate(randomScenario(seed), engine))).toEqual([]);
  });

  it('had statements that overlapped and statements that waited for locks', () => {
    expect(engine.seen.overlaps).toBeGreaterThan(100);
    expect(engine.seen.lockWaits).toBeGreaterThan(0);
  });
});

describe('two workers and three jobs', () => {
  it.each(names)('keep every promise on the %s store, whatever happens to any one call', async (name) => {
    let runs = 0;
    for await (const result of exhaust(engines[name], EVERY[name])) {
      runs++;
      expect(explain(result), JSON.stringify(result.scripted)).toEqual([]);
    }
    expect(runs).toBeGreaterThan(300 / EVERY[name] - 1);
  });
});
