import { describe, expect, inject, it } from 'vitest';
import { runSql } from '../../../test/support/postgres-schema.ts';
import { Two } from '../../../test/support/two-processes.ts';
import type { Decision } from '../../retry/decision.ts';
import { claim, claimOne, complete, enqueueOne, HOUR, idsOf, pruneWith, settlement } from '../conformance/builders.ts';
import type { ClaimedJob, Store } from '../store.ts';

/* Jobs aside, when two transactions meet: see sql/aside.ts. */

const url = inject('postgresUrl');
const knows = new Map([['new', 1]]);
const aside: Decision = {
  kind: 'release',
  delayMs: 0,
  rule: 'no-handler',
  aside: { version: 1, isRejected: false },
};
const kept = { completedMs: null, deadMs: null, cancelledMs: null, asideMs: HOUR };

async function start(store: Store, priority: number): Promise<ClaimedJob> {
  await enqueueOne(store, { name: 'new', priority });
  return claimOne(store);
}

async function asides(two: Two): Promise<number> {
  return (await runSql(url, `SELECT 1 FROM ${two.schema}.asides`)).length;
}

describe('where jobs wait aside', () => {
  it('is kept by pruning while another transaction lets a job wait there', async () => {
    await using two = await Two.open(url);
    await two.other.settle([settlement(await start(two.other, 5), aside)]);
    await two.other.settle([settlement(await claimOne(two.other, { knows }), complete)]);
    const job = await start(two.late, 6);
    const open = await two.begin(/partitions_of/, (store) => store.settle([settlement(job, aside)]));
    await pruneWith(two.other, kept, 100);
    expect(
      await runSql(url, `SELECT 1 FROM ${two.schema}.partitions WHERE priority = 5 AND queue <> 'default'`),
    ).toEqual([]);
    expect(await asides(two)).toBe(1);
    open.commit();
    expect(await open.answer).toEqual(['settled']);
    expect(idsOf((await claim(two.other, { knows })).jobs)).toEqual([job.id]);
  });

  it('is made again by a process that knew it, after another one has deleted it', async () => {
    await using two = await Two.open(url);
    await two.late.settle([settlement(await start(two.late, 5), aside)]);
    await two.late.settle([settlement(await claimOne(two.late, { knows }), complete)]);
    await pruneWith(two.other, kept, 100);
    expect(await asides(two)).toBe(0);
    const job = await start(two.late, 5);
    expect(await two.late.settle([settlement(job, aside)])).toEqual(['settled']);
    expect(await asides(two)).toBe(1);
    for (const stranger of [two.late, two.other]) expect((await claim(stranger)).jobs).toEqual([]);
    expect(idsOf((await claim(two.other, { knows })).jobs)).toEqual([job.id]);
  });
});
