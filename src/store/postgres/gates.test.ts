import { describe, expect, inject, it } from 'vitest';
import { movableTime, newSchema, runSql } from '../../../test/support/postgres-schema.ts';
import { Two } from '../../../test/support/two-processes.ts';
import { type Clock, systemClock } from '../../clock.ts';
import { claim, claimRequest, enqueueOne, MINUTE, newJobs, pruneWith, quota, timeOf } from '../conformance/builders.ts';
import { claimGated, completed, gateOf, report, runsOf, trip } from '../conformance/gate-builders.ts';
import type { Store } from '../store.ts';
import { PostgresStore } from './store.ts';

/*
 * What two processes do with one gate at once: see sql/gates.ts. `late` has done its work and is not committed when `other`
 * comes, and each of these tests says which of the two waits.
 */

const url = inject('postgresUrl');
const smtp = gateOf('smtp');

async function seen(store: Store, count: number): Promise<unknown> {
  return report(store, smtp, await runsOf(store, count, completed));
}

async function aliveIn(store: Store): Promise<number> {
  const [gate] = await store.gates({ limit: 1 });
  return gate?.state.window.buckets.reduce((sum, { alive }) => sum + alive, 0) ?? 0;
}

/** No ordinary claim starts a job of this resource, and a gated one may. */
async function expectGated(two: Two): Promise<void> {
  for (const store of [two.late, two.other]) expect((await claim(store)).jobs).toEqual([]);
  await two.advance(MINUTE);
  for (const store of [two.late, two.other]) expect((await claim(store)).gated).toEqual(['smtp']);
  expect((await claimGated(two.other, 'smtp')).jobs).toHaveLength(1);
}

describe('a gate that two processes write at once', () => {
  it('has what both of them saw, when it has a row', async () => {
    await using two = await Two.open(url);
    await seen(two.other, 1);
    const open = await two.begin(/write_gates/, (store) => seen(store, 3));
    await two.commitWhenBlocked(open, (store) => seen(store, 5));
    await open.answer;
    expect(await aliveIn(two.other)).toBe(9);
  });

  it('has what both of them saw, when it has none', async () => {
    await using two = await Two.open(url);
    const open = await two.begin(/write_gates/, (store) => seen(store, 3));
    await two.commitWhenBlocked(open, (store) => seen(store, 5));
    await open.answer;
    expect(await aliveIn(two.other)).toBe(8);
  });

  it('has what both of them saw, when it is deleted and made again between reading and writing', async () => {
    await using two = await Two.open(url);
    await seen(two.other, 1);
    const open = await two.begin(/read_gates/, (store) => seen(store, 3));
    await runSql(url, `DELETE FROM ${two.schema}.gates`);
    await seen(two.other, 5);
    open.commit();
    await open.answer;
    expect(await aliveIn(two.other)).toBe(8);
  });

  it('gives one probe', async () => {
    await using two = await Two.open(url);
    // So many that two claims seldom draw the same one.
    await two.other.enqueue(newJobs(20, { resource: 'smtp' }));
    await trip(two.other, 'smtp');
    await two.advance(MINUTE);
    const open = await two.begin(/claim_gated/, (store) => claimGated(store, 'smtp'));
    const second = await two.commitWhenBlocked(open, (store) => claimGated(store, 'smtp', { worker: 'other' }));
    const first = await open.answer;
    expect([first.jobs.length, second.jobs.length]).toEqual([1, 0]);
  });

  it('gives another probe when the job that was drawn is gone', async () => {
    // Draws the first.
    const clock: Clock = Object.create(systemClock, { random: { value: () => 0 } });
    await using two = await Two.open(url, clock);
    const ids = [await enqueueOne(two.other, { resource: 'smtp' }), await enqueueOne(two.other, { resource: 'smtp' })];
    await trip(two.other, 'smtp');
    await two.advance(MINUTE);
    const open = await two.begin(/gated_demand/, (store) => claimGated(store, 'smtp'));
    await two.other.cancel([ids[0] as string]);
    open.commit();
    expect((await open.answer).jobs.map(({ id }) => id)).toEqual([ids[1]]);
  });
});

describe('a partition that is made while its gate is written', () => {
  const enqueue = (store: Store): Promise<unknown> => enqueueOne(store, { resource: 'smtp' });

  it('is gated when the gate opens while it is not committed', async () => {
    await using two = await Two.open(url);
    await seen(two.other, 1);
    const open = await two.begin(/partitions_of/, enqueue);
    await two.commitWhenBlocked(open, (store) => trip(store, 'smtp'));
    await open.answer;
    await expectGated(two);
  });

  it('is gated when the gate gets its row while it is not committed', async () => {
    await using two = await Two.open(url);
    const open = await two.begin(/partitions_of/, enqueue);
    await two.commitWhenBlocked(open, (store) => trip(store, 'smtp'));
    await open.answer;
    await expectGated(two);
  });

  it('is gated by a gate that is not committed', async () => {
    await using two = await Two.open(url);
    await seen(two.other, 1);
    const open = await two.begin(/write_gates/, (store) => trip(store, 'smtp'));
    await two.commitWhenBlocked(open, enqueue);
    await open.answer;
    await expectGated(two);
  });

  it('is gated by a gate whose row is not committed', async () => {
    await using two = await Two.open(url);
    const open = await two.begin(/write_gates/, (store) => trip(store, 'smtp'));
    await two.commitWhenBlocked(open, enqueue);
    await open.answer;
    await expectGated(two);
  });

  it('is free when the row of its gate is being deleted', async () => {
    await using two = await Two.open(url);
    await two.other.changeGate(smtp, 'open', 'ann');
    await two.other.changeGate(smtp, 'reset', 'ann');
    await two.other.changeGate(smtp, 'unpin', 'ann');
    await two.advance(60 * MINUTE);
    const never = { completedMs: null, deadMs: null, cancelledMs: null };
    const open = await two.begin(/forget_gates/, (store) => pruneWith(store, never, 1));
    await two.commitWhenBlocked(open, enqueue);
    await open.answer;
    expect(await two.other.gates({ limit: 1 })).toEqual([]);
    expect((await claim(two.other)).jobs).toHaveLength(1);
  });
});

describe('a hold and a gate that are written at once', () => {
  const hold = async (store: Store): Promise<void> => store.hold({ queue: 'default' }, (await timeOf(store)) + MINUTE);

  /** The hold is over by itself, so that no other write mends what these two have left. */
  async function expectGatedAfterHold(two: Two): Promise<void> {
    const held = await claim(two.other);
    expect([held.jobs, held.gated]).toEqual([[], []]);
    expect(held.nextDueAt).toBeGreaterThan(held.now + MINUTE / 2);
    await two.advance(MINUTE);
    await expectGated(two);
  }

  it('both hold, when the gate is not committed', async () => {
    await using two = await Two.open(url);
    await seen(two.other, 1);
    await enqueueOne(two.other, { resource: 'smtp' });
    const open = await two.begin(/write_gates/, (store) => trip(store, 'smtp'));
    await two.commitWhenBlocked(open, hold);
    await open.answer;
    await expectGatedAfterHold(two);
  });

  it('both hold, when the row of the gate is not committed', async () => {
    await using two = await Two.open(url);
    await enqueueOne(two.other, { resource: 'smtp' });
    const open = await two.begin(/write_gates/, (store) => trip(store, 'smtp'));
    await two.commitWhenBlocked(open, hold);
    await open.answer;
    await expectGatedAfterHold(two);
  });

  it('both hold, when the hold is not committed', async () => {
    await using two = await Two.open(url);
    await enqueueOne(two.other, { resource: 'smtp' });
    const open = await two.begin(/hold_/, hold);
    await two.commitWhenBlocked(open, (store) => trip(store, 'smtp'));
    await open.answer;
    await expectGatedAfterHold(two);
  });
});

describe('gates without due jobs', () => {
  const MANY = 100;

  async function openMany(): Promise<{ store: PostgresStore; schema: string; done: () => Promise<void> }> {
    const schema = newSchema();
    const store = await PostgresStore.open({ url, schema, wakeUps: false });
    await movableTime(url, schema);
    const jobs = Array.from({ length: MANY }, (_, index) => newJobs(1, { resource: `host-${index}` })).flat();
    await store.enqueue(jobs);
    for (let index = 0; index < MANY; index++) await trip(store, `host-${index}`);
    await store.cancel(jobs.map(({ id }) => id));
    await runSql(url, `UPDATE ${schema}.test_time SET shift = shift + ${MINUTE}`);
    const done = async (): Promise<void> => {
      await store.close();
      await runSql(url, `DROP SCHEMA ${schema} CASCADE`);
    };
    return { store, schema, done };
  }

  it('do not hide one that has a due job', async () => {
    const { store, schema, done } = await openMany();
    await enqueueOne(store, { resource: 'last' });
    await trip(store, 'last');
    await runSql(url, `UPDATE ${schema}.test_time SET shift = shift + ${MINUTE}`);
    const named: string[] = [];
    for (let claims = 0; claims < 5 && named.length === 0; claims++) named.push(...(await claim(store)).gated);
    expect(named).toEqual(['last']);
    await done();
  });

  it('are named as soon as they have one, though their partitions are parked', async () => {
    const { store, schema, done } = await openMany();
    for (let claims = 0; claims < 5; claims++) expect((await claim(store)).gated).toEqual([]);
    const [parked] = await runSql(
      url,
      `SELECT count(*)::int AS count FROM ${schema}.partitions WHERE gated_at > gate_at`,
    );
    expect((parked as { count: number }).count).toBeGreaterThan(MANY / 2);
    await enqueueOne(store, { resource: 'host-7' });
    expect((await store.claim(claimRequest({ queues: [quota()] }))).gated).toEqual(['host-7']);
    await done();
  });
});
