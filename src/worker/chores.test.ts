import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Chore } from './chores.ts';

const EVERY_MS = 1_000;

function makeChore(work: () => Promise<void> = async () => {}) {
  const clock = new VirtualClock();
  const startedAt: number[] = [];
  const errors: unknown[] = [];
  const chore = new Chore(
    clock,
    EVERY_MS,
    () => {
      startedAt.push(clock.monotonic());
      return work();
    },
    (error) => errors.push(error),
  );
  return { clock, chore, startedAt, errors };
}

describe('a chore', () => {
  it('is done again and again, at about the pace it was given', async () => {
    const { clock, chore, startedAt } = makeChore();
    chore.start();
    await clock.advance(100 * EVERY_MS);
    const pauses = startedAt.map((at, index) => at - (startedAt[index - 1] ?? 0));
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(0.5 * EVERY_MS);
    expect(Math.min(...pauses)).toBeLessThan(0.6 * EVERY_MS);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(1.5 * EVERY_MS);
    expect(Math.max(...pauses)).toBeGreaterThan(1.4 * EVERY_MS);
    await chore.stop();
  });

  it('does not begin again before it has ended', async () => {
    const done = Promise.withResolvers<void>();
    const { clock, chore, startedAt } = makeChore(() => done.promise);
    chore.start();
    await clock.advance(10 * EVERY_MS);
    expect(startedAt).toHaveLength(1);
    done.resolve();
    await clock.advance(1.5 * EVERY_MS);
    expect(startedAt).toHaveLength(2);
    await chore.stop();
  });

  it('that fails is reported, and done again', async () => {
    const { clock, chore, startedAt, errors } = makeChore(() => Promise.reject(new Error('no')));
    chore.start();
    await clock.advance(10 * EVERY_MS);
    expect(startedAt.length).toBeGreaterThan(5);
    expect(errors).toHaveLength(startedAt.length);
    await chore.stop();
  });

  it('that is stopped ends what is under way and begins nothing more', async () => {
    const done = Promise.withResolvers<void>();
    const { clock, chore, startedAt } = makeChore(() => done.promise);
    chore.start();
    await clock.advance(2 * EVERY_MS);
    let isStopped = false;
    const stopped = chore.stop().then(() => {
      isStopped = true;
    });
    await clock.advance(EVERY_MS);
    expect(isStopped).toBe(false);
    done.resolve();
    await stopped;
    expect(clock.pending).toBe(0);
    await clock.advance(10 * EVERY_MS);
    expect(startedAt).toHaveLength(1);
  });

  it('may be stopped while it waits, before it ever began, and without being started', async () => {
    const waiting = makeChore();
    waiting.chore.start();
    await waiting.chore.stop();
    expect(waiting.clock.pending).toBe(0);
    const never = makeChore();
    await never.chore.stop();
    never.chore.start();
    expect(never.clock.pending).toBe(0);
  });
});
