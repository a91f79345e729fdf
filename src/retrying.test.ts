import { describe, expect, it } from 'vitest';
import { doubling, Pauses, pause, type RetryingOptions, steady, withRetries } from './retrying.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

class Outage extends Error {}

const isTransient = (error: unknown): boolean => error instanceof Outage;

/** A call that fails with these errors, one after the other, and then answers; `at` are the times of its tries. */
function failing(errors: readonly Error[], options: Partial<RetryingOptions> = {}) {
  const clock = new VirtualClock();
  const left = [...errors];
  const at: number[] = [];
  const answer = withRetries(clock, { policy: exact(100, 400), isTransient, ...options }, async () => {
    at.push(clock.monotonic());
    const error = left.shift();
    if (error !== undefined) throw error;
    return 'answer';
  });
  const settled = Promise.allSettled([answer]).then(([result]) => result);
  return { clock, at, settled };
}

const exact = (firstMs: number, longestMs: number) => ({ ...doubling(firstMs, longestMs), jitter: 'none' }) as const;
const outages = (count: number): Outage[] => Array.from({ length: count }, (_, n) => new Outage(`outage ${n + 1}`));

describe('withRetries', () => {
  it('repeats a call that failed, after pauses that double up to the longest', async () => {
    const { clock, at, settled } = failing(outages(4));
    await clock.advance(10_000);
    expect(await settled).toMatchObject({ value: 'answer' });
    expect(at).toEqual([0, 100, 300, 700, 1_100]);
  });

  it('throws an error that is not transient at once', async () => {
    const { clock, at, settled } = failing([new Outage('first'), new TypeError('a bug')]);
    await clock.advance(10_000);
    expect(await settled).toMatchObject({ reason: expect.any(TypeError) });
    expect(at).toEqual([0, 100]);
    expect(clock.pending).toBe(0);
  });

  it('throws the last error when the number of tries is spent', async () => {
    const { clock, at, settled } = failing(outages(9), { maxAttempts: 3 });
    await clock.advance(10_000);
    expect(await settled).toMatchObject({ reason: { message: 'outage 3' } });
    expect(at).toEqual([0, 100, 300]);
  });

  it('starts no try after the time is over, and tries once more shortly before it', async () => {
    const { clock, at, settled } = failing(outages(99), { giveUpAfterMs: 1_000 });
    await clock.advance(10_000);
    expect(await settled).toMatchObject({ status: 'rejected' });
    expect(Math.max(...at)).toBeLessThan(1_000);
    expect(Math.max(...at)).toBeGreaterThan(800);
  });

  it('follows a limit that moves, as a lease does that is renewed', async () => {
    let until = 250;
    const clock = new VirtualClock();
    const at: number[] = [];
    const settled = Promise.allSettled([
      withRetries(
        clock,
        { policy: exact(100, 100), isTransient, leftMs: () => until - clock.monotonic() },
        async () => {
          at.push(clock.monotonic());
          if (at.length === 2) until = 450;
          throw new Outage(`outage ${at.length}`);
        },
      ),
    ]);
    await clock.advance(10_000);
    expect(await settled).toMatchObject([{ reason: { message: 'outage 5' } }]);
    expect(at).toEqual([0, 100, 200, 300, 400]);
  });

  it('makes the first try even when no time is left for it', async () => {
    const { settled } = failing([], { leftMs: () => 0, giveUpAfterMs: 0 });
    expect(await settled).toMatchObject({ value: 'answer' });
  });

  it('makes no further try when the time ran out during a pause, as when the process was stopped', async () => {
    let leftMs = 500;
    const { clock, at, settled } = failing(outages(9), { leftMs: () => leftMs });
    await clock.advance(0);
    leftMs = -60_000;
    await clock.advance(10_000);
    expect(await settled).toMatchObject({ reason: { message: 'outage 1' } });
    expect(at).toEqual([0]);
  });

  it('ends in the middle of a pause when its signal aborts, and leaves no timer behind', async () => {
    const stop = new AbortController();
    const { clock, at, settled } = failing(outages(9), { signal: stop.signal });
    await clock.advance(150);
    stop.abort();
    expect(await settled).toMatchObject({ reason: { message: 'outage 2' } });
    expect(at).toEqual([0, 100]);
    expect(clock.pending).toBe(0);
  });

  it('makes a single try when its signal has aborted before', async () => {
    const { clock, at, settled } = failing(outages(9), { signal: AbortSignal.abort() });
    expect(await settled).toMatchObject({ reason: { message: 'outage 1' } });
    expect(at).toEqual([0]);
    expect(clock.pending).toBe(0);
  });

  it('reports each failure that it retries, and not the last one', async () => {
    const seen: [string, number][] = [];
    const { clock, settled } = failing(outages(9), {
      maxAttempts: 3,
      onRetry: (error, failures) => seen.push([(error as Error).message, failures]),
    });
    await clock.advance(10_000);
    await settled;
    expect(seen).toEqual([
      ['outage 1', 1],
      ['outage 2', 2],
    ]);
  });
});

describe('Pauses', () => {
  it('grow with each failure, and begin again after a success', () => {
    const pauses = new Pauses(exact(10, 35), () => 0);
    expect([pauses.next(), pauses.next(), pauses.next(), pauses.next()]).toEqual([10, 20, 35, 35]);
    expect(pauses.failures).toBe(4);
    pauses.reset();
    expect(pauses.failures).toBe(0);
    expect(pauses.next()).toBe(10);
  });

  it('are jittered between half and the whole', () => {
    const random = new VirtualClock();
    for (const [policy, wholeMs] of [
      [doubling(1_000, 1_000), 1_000],
      [steady(250), 250],
    ] as const) {
      const drawn = Array.from({ length: 200 }, () => new Pauses(policy, () => random.random()).next());
      expect(Math.min(...drawn)).toBeGreaterThanOrEqual(wholeMs / 2);
      expect(Math.max(...drawn)).toBeLessThanOrEqual(wholeMs);
      expect(new Set(drawn).size).toBeGreaterThan(50);
    }
  });

  it('take any policy that jobs can have', () => {
    const table = new Pauses({ backoff: { kind: 'table', delaysMs: [1, 5] }, jitter: 'none' }, () => 0);
    expect([table.next(), table.next(), table.next()]).toEqual([1, 5, 5]);
    const decorrelated = new Pauses({ ...doubling(10, 1_000), jitter: 'decorrelated' }, () => 0.999);
    expect([decorrelated.next(), decorrelated.next()]).toEqual([30, 90]);
  });
});

describe('pause', () => {
  it('ends after its time, and leaves no listener on the signal', async () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    const paused = pause(clock, 100, stop.signal);
    await clock.advance(100);
    await paused;
    stop.abort();
    expect(clock.pending).toBe(0);
  });
});
