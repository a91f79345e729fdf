import { describe, expect, inject, it } from 'vitest';
import { type Engine, interleavedPostgres, memory, sqlite } from '../../sim/engines.ts';
import type { ExecutedEvent, History } from '../../sim/history.ts';
import type { Scenario } from '../../sim/scenario.ts';
import { START } from '../../sim/scheduler.ts';
import { simulate } from '../../sim/simulate.ts';
import type { ScheduleWrite, ScheduleWritten } from '../../src/store/store.ts';

const MINUTE_MS = 60_000;
/** The model runs for an hour. The others are slower, and run for as long with MULLIGAN_SOAK_SECONDS. */
const HOUR_MS: number = 60 * MINUTE_MS;
const isSoak = process.env.MULLIGAN_SOAK_SECONDS !== undefined;

/** Three workers that are killed, paused and cut off at any moment; the schedule ticks each second. */
const anHour: Scenario = {
  seed: 14,
  workers: 3,
  oldDeploy: null,
  jobs: 0,
  leaseMs: 2_000,
  concurrency: 5,
  retryShare: 0.2,
  maxRetriesInFlight: null,
  faultsForMs: HOUR_MS,
  probability: { lost: 0.02, refused: 0.02, hangs: 0.003, crash: 0.01, wakeUpLost: 0.5 },
  perSecond: { pause: 0.02, clockStep: 0.02, storeAway: 0.002, fullDisk: 0.002, operator: 0 },
  slowestCallMs: 50,
  names: null,
  outages: [],
  limits: { limits: [], changesPerSecond: 0 },
  throttled: 0,
  schedules: [{ everyMs: 1_000, overlap: 'allow' }],
};

function firedTicks(history: History): number[] {
  const written = history.events.filter(
    (event): event is ExecutedEvent =>
      event.kind === 'executed' && event.verb === 'writeSchedule' && (event.value as ScheduleWritten).written,
  );
  return written.flatMap(({ args }) => (args[0] as ScheduleWrite).jobs.map(({ dueAt }) => (dueAt as number) - START));
}

describe('a schedule that ticks each second of virtual time, while 3 workers are killed at random', () => {
  it.each<[string, number, Engine]>([
    ['memory', isSoak ? HOUR_MS : 15 * MINUTE_MS, memory],
    ['SQLite', isSoak ? HOUR_MS : 3 * MINUTE_MS, sqlite],
    ['PostgreSQL, where calls overlap', isSoak ? HOUR_MS : MINUTE_MS / 2, interleavedPostgres(inject('postgresUrl'))],
  ])('gets exactly one job per tick on %s', { timeout: isSoak ? HOUR_MS : 180_000 }, async (_, faultsForMs, engine) => {
    // In a short time, enough crashes only come when they are frequent.
    const crash = faultsForMs < 10 * MINUTE_MS ? 0.05 : anHour.probability.crash;
    const scenario = { ...anHour, faultsForMs, probability: { ...anHour.probability, crash } };
    const { history, violations } = await simulate(scenario, engine);
    expect(violations).toEqual([]);
    const ticks = firedTicks(history);
    const first = Math.min(...ticks);
    expect(ticks).toEqual(Array.from({ length: ticks.length }, (_, n) => first + n * 1_000));
    expect(ticks.length).toBeGreaterThanOrEqual(faultsForMs / 1_000 - 1);
    const crashes = history.events.filter((event) => event.kind === 'note' && event.text.includes('crashed'));
    expect(crashes.length).toBeGreaterThan(faultsForMs / MINUTE_MS);
  });
});
