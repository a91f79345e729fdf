import { describe, expect, it } from 'vitest';
import { StoreBusyError, StoreUnavailableError } from '../errors.ts';
import type { LogEntry } from '../observe/log.ts';
import { makeLogger } from '../observe/log.ts';
import { tickId } from '../schedule/tick-id.ts';
import { policy } from '../store/conformance/builders.ts';
import { MemoryStore } from '../store/memory/store.ts';
import type { Enqueued, NewJob, Schedule, Store } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { SPREAD_MS, Ticker } from './schedules.ts';

const SECOND = 1_000;
const MINUTE = 60_000;

function scheduleOf(clock: VirtualClock, changes: Partial<Schedule> = {}): Schedule {
  const name = changes.name ?? 'minutely';
  return {
    name,
    version: clock.newId(),
    nextAt: clock.now() + MINUTE,
    timing: { kind: 'every', everyMs: MINUTE, anchor: clock.now() },
    job: {
      ...{ name: 'report', queue: 'default', retryQueue: null, resource: null, priority: 5, payload: '{}', policy },
      ...{ key: null, keyLife: 'finished' },
    },
    ...{ misfire: 'once', misfireLimit: 100, paused: false, lastAt: null, code: null, updatedAt: 0 },
    ...changes,
  };
}

/** Tickers that share a store, and what they have fired. `around` may replace verbs of the store. */
async function ticking(count: number, around: (store: MemoryStore) => Partial<Store> = () => ({}), pollMs = SECOND) {
  const clock = new VirtualClock();
  const memory = new MemoryStore({ clock });
  const fired: (Enqueued & { dueAt: number | null; at: number })[] = [];
  const log: LogEntry[] = [];
  const errors: unknown[] = [];
  let looks = 0;
  const store: Pick<Store, 'schedules' | 'writeSchedule'> = {
    schedules: (filter) => {
      looks++;
      return memory.schedules(filter);
    },
    writeSchedule: (write) => memory.writeSchedule(write),
    ...around(memory),
  };
  const tickers = Array.from(
    { length: count },
    () =>
      new Ticker({
        ...{
          store,
          clock,
          pollMs,
          spreadMs: SPREAD_MS,
          log: makeLogger(
            (entry) => log.push(entry),
            () => ({}),
          ),
        },
        onEnqueued: (job: NewJob, answer) => fired.push({ ...answer, dueAt: job.dueAt, at: clock.now() }),
        onError: (error) => errors.push(error),
      }),
  );
  const put = (changes: Partial<Schedule> = {}): Promise<unknown> => {
    const to = scheduleOf(clock, changes);
    return memory.writeSchedule({ name: to.name, from: null, to, jobs: [] });
  };
  for (const ticker of tickers) memory.onWork(() => ticker.wake());
  return {
    ...{ clock, memory, tickers, fired, log, errors, put },
    looks: () => looks,
    start: () => tickers.forEach((ticker) => void ticker.start()),
    [Symbol.asyncDispose]: async () => void (await Promise.all(tickers.map((ticker) => ticker.stop()))),
  };
}

describe('workers that fire ticks', () => {
  it('store one job per tick, however many they are', async () => {
    await using fleet = await ticking(5);
    const start = fleet.clock.now();
    await fleet.put();
    fleet.start();
    await fleet.clock.advance(10 * MINUTE + SECOND);
    const ticks = Array.from({ length: 10 }, (_, n) => start + (n + 1) * MINUTE);
    expect(fleet.fired.map(({ dueAt }) => dueAt)).toEqual(ticks);
    expect(fleet.fired.map(({ id }) => id)).toEqual(ticks.map((tick) => tickId('minutely', tick)));
    expect((await fleet.memory.stats()).rows[0]?.totals.enqueued).toBe(10);
  });

  it('fire a tick within the spread of its time', async () => {
    await using fleet = await ticking(1);
    await fleet.put();
    fleet.start();
    await fleet.clock.advance(MINUTE - 1);
    expect(fleet.fired).toEqual([]);
    await fleet.clock.advance(50);
    expect(fleet.fired).toHaveLength(1);
  });

  it('fire each tick within the spread of its time, also the hundredth of a schedule of a second', async () => {
    await using fleet = await ticking(1);
    const timing = { kind: 'every', everyMs: SECOND, anchor: fleet.clock.now() } as const;
    await fleet.put({ timing, nextAt: fleet.clock.now() + SECOND });
    fleet.start();
    await fleet.clock.advance(100 * SECOND + 50);
    expect(fleet.fired).toHaveLength(100);
    expect(Math.max(...fleet.fired.map(({ at, dueAt }) => at - (dueAt as number)))).toBeLessThanOrEqual(SPREAD_MS);
  });

  it('look no more often than they have to', async () => {
    await using fleet = await ticking(1, undefined, 10 * MINUTE);
    await fleet.put();
    fleet.start();
    await fleet.clock.advance(30 * MINUTE);
    expect(fleet.fired).toHaveLength(29);
    // One at each tick, and one after the hint that its own write gives.
    expect(fleet.looks()).toBeLessThan(65);
  });

  it('find a schedule that is written while they sleep', async () => {
    await using fleet = await ticking(1, undefined, 60 * MINUTE);
    fleet.start();
    await fleet.clock.advance(10 * MINUTE);
    await fleet.put({ nextAt: fleet.clock.now() + 2 * SECOND });
    await fleet.clock.advance(3 * SECOND);
    expect(fleet.fired).toHaveLength(1);
  });

  it('go on when the answer to a tick was lost, and fire it once', async () => {
    let calls = 0;
    await using fleet = await ticking(2, (memory) => ({
      writeSchedule: async (write) => {
        const answer = await memory.writeSchedule(write);
        if (++calls % 2 === 1) throw new StoreUnavailableError('the answer was lost');
        return answer;
      },
    }));
    await fleet.put();
    fleet.start();
    await fleet.clock.advance(6 * MINUTE + 5 * SECOND);
    expect(fleet.errors.length).toBeGreaterThan(0);
    expect((await fleet.memory.stats()).rows[0]?.totals.enqueued).toBe(6);
  });

  it('fire the other schedules when one cannot be fired, and log it once in a minute', async () => {
    await using fleet = await ticking(1, (memory) => ({
      writeSchedule: (write) => {
        if (write.name === 'locked') throw new StoreBusyError('locked');
        return memory.writeSchedule(write);
      },
    }));
    await fleet.put({ name: 'locked' });
    await fleet.put({ name: 'broken', timing: { kind: 'cron', cron: '* * * * *', timezone: 'Mars/Olympus' } });
    await fleet.put({ name: 'well' });
    fleet.start();
    await fleet.clock.advance(MINUTE + 30 * SECOND);
    expect(fleet.fired).toHaveLength(1);
    expect(fleet.log.map(({ level, schedule }) => [level, schedule])).toEqual([
      ['error', 'broken'],
      ['error', 'locked'],
    ]);
  });

  it('fire a schedule that is due after more broken ones than are read at once', async () => {
    await using fleet = await ticking(1);
    const timing = { kind: 'cron', cron: 'x', timezone: 'UTC' } as const;
    const nextAt = fleet.clock.now() + 1;
    for (let at = 0; at < 250; at++) await fleet.put({ name: `broken ${at}`, timing, nextAt });
    await fleet.put({ name: 'well' });
    fleet.start();
    await fleet.clock.advance(3 * MINUTE + SECOND);
    expect(fleet.fired).toHaveLength(3);
    expect(fleet.log.length).toBeLessThanOrEqual(4 * 250);
    expect(fleet.looks()).toBeLessThan(400);
  });

  it('fire a schedule that was mended at once', async () => {
    await using fleet = await ticking(1);
    await fleet.put({ timing: { kind: 'cron', cron: 'x', timezone: 'UTC' } });
    fleet.start();
    await fleet.clock.advance(MINUTE + 10 * SECOND);
    const [broken] = (await fleet.memory.schedules({ limit: 1 })).schedules;
    const to = scheduleOf(fleet.clock, { nextAt: fleet.clock.now() });
    await fleet.memory.writeSchedule({ name: to.name, from: broken?.version ?? null, to, jobs: [] });
    await fleet.clock.advance(2 * SECOND);
    expect(fleet.fired).toHaveLength(1);
  });

  it('log ticks that were missed, and fire as the misfire policy says', async () => {
    await using fleet = await ticking(1);
    await fleet.put({ misfire: 'all' });
    await fleet.put({ name: 'once', misfire: 'once' });
    await fleet.put({ name: 'skip', misfire: 'skip' });
    await fleet.clock.advance(5 * MINUTE + 30 * SECOND);
    fleet.start();
    await fleet.clock.advance(SECOND);
    expect(fleet.fired).toHaveLength(5 + 1 + 1);
    const missed = fleet.log.filter(({ level }) => level === 'warn');
    expect(missed.map(({ schedule, fired }) => [schedule, fired])).toEqual([
      ['minutely', 5],
      ['once', 1],
      ['skip', 1],
    ]);
  });

  it('enqueue nothing while a job of the schedule is live, when that is not to overlap', async () => {
    await using fleet = await ticking(1);
    await fleet.put({ job: { ...scheduleOf(fleet.clock).job, key: 'schedule:minutely' } });
    fleet.start();
    await fleet.clock.advance(3 * MINUTE + SECOND);
    expect(fleet.fired.map(({ existed }) => existed)).toEqual([false, true, true]);
    expect(new Set(fleet.fired.map(({ id }) => id)).size).toBe(1);
  });

  it('fire nothing again when the clock of the store steps back, and nothing is lost when it steps forward', async () => {
    await using fleet = await ticking(3);
    await fleet.put({ misfire: 'all', misfireLimit: 1_000 });
    const start = fleet.clock.now();
    fleet.start();
    for (const stepMs of [0, -10 * MINUTE, 25 * MINUTE, -3 * MINUTE, 3 * MINUTE]) {
      fleet.clock.step(stepMs);
      await fleet.clock.advance(5 * MINUTE);
    }
    await fleet.clock.advance(SECOND);
    const ticks = fleet.fired.map(({ dueAt }) => (dueAt as number) - start);
    expect(ticks).toEqual(Array.from({ length: 40 }, (_, n) => (n + 1) * MINUTE));
  });

  it('that stop fire nothing more', async () => {
    const fleet = await ticking(1);
    await fleet.put();
    fleet.start();
    await fleet.clock.advance(MINUTE - SECOND);
    await fleet[Symbol.asyncDispose]();
    await fleet.clock.advance(5 * MINUTE);
    expect(fleet.fired).toEqual([]);
    expect(fleet.clock.pending).toBe(0);
  });
});
