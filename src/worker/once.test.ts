import { expect, it } from 'vitest';
import { LeaseLostError } from '../errors.ts';
import type { ClaimedJob } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Lease } from './lease.ts';
import { Memos } from './once.ts';

it('an effect does not begin when the lease is over: another run may be at it by now', async () => {
  const clock = new VirtualClock();
  const lease = new Lease({ id: 'job', run: 1, worker: 'w', claimedAt: 0 } as ClaimedJob, 1_000, 0, clock);
  const store = { recall: async () => new Map<string, string>(), remember: async () => true };
  const memos = new Memos(lease, store, clock, 1_000);
  let effects = 0;
  expect(await memos.once('first', () => ++effects)).toBe(1);
  await clock.advance(1_000);
  await expect(memos.once('second', () => ++effects)).rejects.toThrow(LeaseLostError);
  expect(effects).toBe(1);
});
