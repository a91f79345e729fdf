import { describe, expect, it } from 'vitest';
import type { ClaimedJob, SettleAnswer, Settlement } from '../store/store.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { ActiveJob } from './active-job.ts';
import { Lease } from './lease.ts';
import { type Ending, Settler } from './settle.ts';

/** Settles these at once; answers the calls that the store gets. */
async function callsFor(endings: number, change: Partial<Settlement>): Promise<(readonly Settlement[])[]> {
  const clock = new VirtualClock();
  const calls: (readonly Settlement[])[] = [];
  const answered: Ending[] = [];
  const sizes: number[] = [];
  const settle = async (settlements: readonly Settlement[]): Promise<SettleAnswer[]> => {
    calls.push(settlements);
    return settlements.map(() => 'settled');
  };
  const settler = new Settler({ settle }, clock, () => false, {
    answered: (ending) => answered.push(ending),
    failed: (_, error) => expect.unreachable(String(error)),
    sent: (count) => sizes.push(count),
    retried: (_, error) => expect.unreachable(String(error)),
  });
  for (let n = 0; n < endings; n++) {
    const fence = { id: `job-${n}`, run: 1, worker: 'w' };
    const job = new ActiveJob(new Lease({ ...fence, claimedAt: 0 } as ClaimedJob, 30_000, 0, clock));
    const decision = { kind: 'complete', rule: 'completed' } as const;
    const settlement = { ...fence, outcome: 'completed', decision, error: null, startedAt: 0, endedAt: 0 } as const;
    settler.settle({ job, settlement: { ...settlement, ...change } });
  }
  await clock.advance(1);
  await settler.flushed();
  expect(sizes).toEqual(calls.map((call) => call.length));
  expect(answered).toHaveLength(endings);
  return calls;
}

describe('settlements travel together', () => {
  it('up to a thousand of them', async () => {
    expect((await callsFor(2_500, {})).map(({ length }) => length)).toEqual([1_000, 1_000, 500]);
  });

  it.each<[string, Partial<Settlement>]>([
    ['stacks', { error: { name: 'E', message: 'no', code: null, status: null, stack: 'x'.repeat(50_000) } }],
    ['messages', { error: { name: 'E', message: 'x'.repeat(50_000), code: null, status: null, stack: null } }],
    [
      'complaints of a schema',
      {
        error: {
          name: 'E',
          message: '',
          code: null,
          status: null,
          stack: null,
          issues: new Array(50).fill({ message: 'x'.repeat(500), path: 'y'.repeat(500) }),
        },
      },
    ],
    ['logs', { log: 'x'.repeat(50_000) }],
    ['notes', { decision: { kind: 'complete', rule: 'completed', note: 'x'.repeat(50_000) } }],
  ])('up to about 4 MiB of them, when they have large %s', async (_, change) => {
    const calls = await callsFor(500, change);
    expect(calls.length).toBeGreaterThan(5);
    for (const settlements of calls) expect(JSON.stringify(settlements).length).toBeLessThan(4.5 * 1_048_576);
  });

  it('and one that is larger travels alone', async () => {
    const error = { name: 'E', message: 'x'.repeat(5_000_000), code: null, status: null, stack: null };
    expect((await callsFor(3, { error })).map(({ length }) => length)).toEqual([1, 1, 1]);
  });
});
