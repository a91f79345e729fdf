import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, it } from 'vitest';
import { chance } from '../faults/chance.ts';
import { TestDatabase } from '../support/postgres-database.ts';
import { Crew, meanBetween, mostAtOnce, mostInWindow } from './crew.ts';
import { CONCURRENCY, counted, RATE, rated, TOTAL } from './jobs.ts';

/** The whole size takes minutes. */
const isWhole = process.env.MULLIGAN_LIMITS_WHOLE !== undefined;
const KEYS = 1_000;
const WORKERS = 5;
const JOB_MS = 1_000;
/** How long the fleet is left alone, and how long processes are killed then. */
const CALM_MS = isWhole ? 30_000 : 5_000;
const KILLING_MS = isWhole ? 60_000 : 5_000;
const RATED_KEYS = isWhole ? 200 : 5;
const RATED_MS = isWhole ? 60_000 : 14_000;

const stores = {
  SQLite: async () => ({ url: undefined, [Symbol.asyncDispose]: async () => {} }),
  PostgreSQL: () => TestDatabase.create(inject('postgresUrl')),
};

describe.each(Object.entries(stores))('a fleet of processes on %s', (_, open) => {
  it('never exceeds the concurrency of a key nor the total, also while processes are killed, and keeps the total in use', async () => {
    const luck = chance();
    await using database = await open();
    await using crew = await Crew.start(WORKERS, { concurrency: 10, lease: '1s' }, database.url);
    const inputs = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ input: { file: crew.file, key: `key-${n % KEYS}`, ms: JOB_MS } }));
    // Of the first keys there is more, so that their concurrency matters.
    const often = Array.from({ length: 100 }, (_, n) => ({
      input: { file: crew.file, key: `key-${n % 3}`, ms: JOB_MS },
    }));
    await crew.mulligan.enqueueMany(counted, [...often, ...inputs(4 * KEYS)]);
    await sleep(CALM_MS);
    const calmTo = Number(process.hrtime.bigint()) / 1e6;
    expect(await crew.waiting()).toBeGreaterThan(0);
    const stopAt = calmTo + KILLING_MS;
    while (Number(process.hrtime.bigint()) / 1e6 < stopAt) {
      await sleep(luck.between(100, 800));
      await crew.replace(luck.index(WORKERS));
    }
    expect(await crew.waiting()).toBeGreaterThan(0);
    const stays = crew.stays();
    expect(mostAtOnce(stays)).toBeLessThanOrEqual(TOTAL);
    for (const [key, own] of Map.groupBy(stays, (stay) => stay.key)) {
      expect(mostAtOnce(own), key).toBeLessThanOrEqual(CONCURRENCY);
    }
    for (const [id, own] of Map.groupBy(stays, (stay) => stay.id)) expect(mostAtOnce(own), id).toBe(1);
    const used = meanBetween(stays, calmTo - CALM_MS * 0.6, calmTo - CALM_MS * 0.1) / TOTAL;
    if (process.env.MULLIGAN_LIMITS_FIGURES) console.log(`${stays.length} runs, ${used} of the total in use`);
    // 0.95 on a machine that does nothing else; tests beside it take a part of the processor.
    if (isWhole) expect(used).toBeGreaterThanOrEqual(0.95);
  });

  it('starts jobs of each key as often as its rate allows, and never more often', async () => {
    await using database = await open();
    await using crew = await Crew.start(2, { concurrency: 10, lease: '30s' }, database.url);
    const perKey = Math.ceil((RATE.limit * (RATED_MS + 5_000)) / RATE.perMs);
    const keys = Array.from({ length: RATED_KEYS }, (_, n) => `key ${n}`);
    const jobs = keys.flatMap((key) => Array.from({ length: perKey }, () => ({ input: { key } })));
    await crew.mulligan.enqueueMany(rated, jobs);
    await sleep(RATED_MS);
    const started = await startsOf(crew);
    const endsAt = Math.max(...[...started.values()].flat());
    for (const key of keys) {
      const times = started.get(key) ?? [];
      expect(mostInWindow(times, RATE.perMs), key).toBeLessThanOrEqual(RATE.limit);
      const allowed = (RATE.limit * (endsAt - Math.min(...times))) / RATE.perMs;
      if (process.env.MULLIGAN_LIMITS_FIGURES) console.log(`${key}: ${times.length} of ${allowed}`);
      // A busy machine starts them late; the whole run is for one that is not.
      if (isWhole) expect(times.length, key).toBeGreaterThanOrEqual(0.95 * allowed);
    }
  });
});

/** When jobs of each key were claimed: each runs once. */
async function startsOf({ mulligan }: Crew): Promise<Map<string, number[]>> {
  const starts = new Map<string, number[]>();
  for (let after: string | undefined; ; ) {
    const page = await mulligan.jobs.list({ name: rated.name, limit: 5_000, ...(after && { after }) });
    for (const { firstStartedAt, limits } of page) {
      const key = limits[0]?.key as string;
      if (firstStartedAt !== null) starts.set(key, [...(starts.get(key) ?? []), Number(firstStartedAt)]);
    }
    after = page.at(-1)?.id;
    if (page.length < 5_000) return starts;
  }
}
