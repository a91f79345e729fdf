import { describe, expect, it } from 'vitest';
import { LeaseLostError, PayloadError } from '../errors.ts';
import { Unrecoverable } from '../retry/control-errors.ts';
import type { ClaimedJob } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Lease } from './lease.ts';
import { Memos } from './once.ts';

const clock = new VirtualClock();
const stored = new Map<string, string>();
const store = {
  recall: async () => new Map(stored),
  remember: async (_: unknown, key: string, value: string) => {
    stored.set(key, value);
    return true;
  },
};

function memosOf(run: number): Memos {
  const job = { id: 'job', run, worker: 'w', claimedAt: 0 } as ClaimedJob;
  return new Memos(new Lease(job, 1_000, clock.monotonic(), clock), store, clock, {
    maxBytes: 100,
    isOver: () => false,
  });
}

it('an effect does not begin when the lease is over: another run may be at it by now', async () => {
  const memos = memosOf(1);
  let effects = 0;
  expect(await memos.once('first', () => ++effects)).toBe(1);
  await clock.advance(1_000);
  await expect(memos.once('second', () => ++effects)).rejects.toThrow(LeaseLostError);
  expect(effects).toBe(1);
});

describe('an effect whose result cannot be stored', () => {
  it.each([
    ['not-json', () => ({ amount: 5n })],
    ['too-large', () => 'x'.repeat(200)],
  ])('is not repeated, and its job fails for good: %s', async (key, result) => {
    let effects = 0;
    const effect = (): unknown => {
      effects++;
      return result();
    };
    const first = memosOf(1);
    const thrown = await first.once(key, effect).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(Unrecoverable);
    expect((thrown as Error).cause).toBeInstanceOf(PayloadError);
    expect((thrown as Error).message).toMatch(
      /^once\("[a-z-]+"\): the effect is done and will not be repeated, but its result cannot be stored: .+ expected /,
    );
    await expect(first.once(key, effect)).rejects.toThrow(Unrecoverable);
    await expect(memosOf(2).once(key, effect)).rejects.toThrow(
      `once("${key}"): the effect was done before, but its result could not be stored. Catch this error where the handler can go on without the result.`,
    );
    await expect(memosOf(2).once(key, effect)).rejects.toThrow(Unrecoverable);
    expect(effects).toBe(1);
  });
});
