import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Lane } from '../job.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { type Load, Prefetch } from './prefetch.ts';

const CONCURRENCY = 10;
const empty: Load = { running: 0, buffered: 0, leavingFirst: 0, settling: 0 };
const jobs = (count: number, lane: Lane): { lane: Lane }[] => new Array(count).fill({ lane });

function makePrefetch(meanRunMs: number | null = null) {
  const clock = new VirtualClock();
  const prefetch = new Prefetch(clock, CONCURRENCY);
  if (meanRunMs !== null) prefetch.ran(meanRunMs);
  return { clock, prefetch, places: (load: Partial<Load> = {}) => prefetch.places({ ...empty, ...load }) };
}

describe('a worker claims', () => {
  it('at least as many jobs as places are empty, whatever earlier claims brought and however runs went', () => {
    const event = fc.oneof(
      fc.record({ ran: fc.double({ min: 0, max: 10_000, noNaN: true }) }),
      fc.record({ fresh: fc.nat(100), retries: fc.nat(100) }),
      fc.constant('news' as const),
      fc.constant('asked' as const),
    );
    fc.assert(
      fc.property(fc.array(event), fc.integer({ min: 0, max: CONCURRENCY }), (events, running) => {
        const { prefetch, places } = makePrefetch();
        for (const one of events) {
          if (one === 'news') prefetch.newWork();
          else if (one === 'asked') prefetch.asked();
          else if ('ran' in one) prefetch.ran(one.ran);
          else prefetch.claimed([...jobs(one.fresh, 'fresh'), ...jobs(one.retries, 'retry')]);
        }
        expect(places({ running })).toBeGreaterThanOrEqual(CONCURRENCY - running);
      }),
    );
  });

  it('no job ahead before it knows how long a run takes, and none when runs take long', () => {
    expect(makePrefetch().places()).toBe(CONCURRENCY);
    expect(makePrefetch(10_000).places()).toBe(CONCURRENCY);
  });

  it('as many ahead as start within 50 ms, as a mean of the latest runs', () => {
    expect(makePrefetch(100).places()).toBe(CONCURRENCY + 5);
    const { prefetch, places } = makePrefetch(100);
    for (let run = 0; run < 100; run++) prefetch.ran(10);
    expect(places()).toBe(CONCURRENCY + 49);
  });

  it('a bounded number ahead, however short the runs are', () => {
    const shortest = makePrefetch(0.001).places();
    expect(shortest).toBe(makePrefetch(0).places());
    expect(shortest).toBeLessThanOrEqual(10 * CONCURRENCY);
  });

  it('at most a thousand jobs at once, however many places there are', () => {
    expect(new Prefetch(new VirtualClock(), 5_000).places(empty)).toBe(1_000);
  });

  it('what it has room for, counting what runs and what is buffered', () => {
    expect(makePrefetch(100).places({ running: 5, buffered: 2 })).toBe(8);
  });

  it('nothing while jobs are buffered and little room is left, and whatever is free when none is', () => {
    const { places } = makePrefetch(100);
    expect(places({ running: 10, buffered: 4 })).toBe(0);
    expect(places({ running: 10, buffered: 0 })).toBe(5);
    expect(places({ running: 9, buffered: 0 })).toBe(6);
  });

  it('nothing while outcomes pile up that could not be recorded', () => {
    const { places } = makePrefetch();
    expect(places({ settling: 2 * CONCURRENCY })).toBe(CONCURRENCY);
    expect(places({ settling: 2 * CONCURRENCY + 1 })).toBe(0);
  });

  it('something while more outcomes wait to be recorded, when it claims more jobs ahead', () => {
    const { places } = makePrefetch(1);
    const most = places({});
    expect(most).toBeGreaterThan(CONCURRENCY);
    expect(places({ settling: 2 * most })).toBe(most);
    expect(places({ settling: 2 * most + 1 })).toBe(0);
  });
});

describe('a worker whose claims bring mostly retries', () => {
  it('claims nothing ahead for a second after a fresh job arrived among them', async () => {
    const { clock, prefetch, places } = makePrefetch(1);
    const ahead = places();
    expect(ahead).toBeGreaterThan(CONCURRENCY);
    prefetch.newWork();
    prefetch.asked();
    prefetch.claimed([...jobs(9, 'retry'), ...jobs(1, 'fresh')]);
    expect(places()).toBe(CONCURRENCY);
    await clock.advance(999);
    prefetch.claimed(jobs(10, 'redrive'));
    expect(places()).toBe(CONCURRENCY);
    await clock.advance(1);
    expect(places()).toBe(ahead);
  });

  it('claims ahead as ever when the fresh jobs among them are the rest of a backlog', async () => {
    const { clock, prefetch, places } = makePrefetch(1);
    const ahead = places();
    prefetch.newWork();
    prefetch.asked();
    await clock.advance(1_000);
    prefetch.claimed([...jobs(9, 'retry'), ...jobs(1, 'fresh')]);
    expect(places()).toBe(ahead);
  });

  it('claims ahead as ever when no fresh job came, or when at least half were fresh', () => {
    const { prefetch, places } = makePrefetch(1);
    const ahead = places();
    prefetch.claimed(jobs(10, 'retry'));
    expect(places()).toBe(ahead);
    prefetch.claimed([...jobs(5, 'retry'), ...jobs(5, 'fresh')]);
    expect(places()).toBe(ahead);
  });

  it('claims a few more at once when it hears of new work, even when it is full', () => {
    const { prefetch, places } = makePrefetch(1);
    const full = { running: CONCURRENCY, buffered: places() - CONCURRENCY };
    prefetch.newWork();
    expect(places(full)).toBe(0);
    prefetch.claimed(jobs(10, 'retry'));
    expect(places(full)).toBe(1);
    expect(places({ ...full, buffered: full.buffered + 1 })).toBe(0);
    prefetch.asked();
    expect(places(full)).toBe(0);
  });
});
