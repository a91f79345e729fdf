import assert from 'node:assert/strict';
import { GATED_NAMED } from '../store.ts';
import {
  claim,
  claimOne,
  enqueueOne,
  HOUR,
  idsOf,
  MINUTE,
  newJob,
  only,
  quota,
  retryIn,
  settleOne,
} from './builders.ts';
import {
  ask,
  claimGated,
  claimProbe,
  enqueueBehind,
  gateOf,
  recover,
  refused,
  report,
  runsOf,
  throttled,
  trip,
} from './gate-builders.ts';
import { cases, type StoreCase } from './suite.ts';

const smtp = gateOf('smtp');

export const behindGatesCases: readonly StoreCase[] = cases('claim', {
  'a claim takes nothing behind an open gate, and everything else': async ({ store }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 3);
    await trip(store, 'smtp');
    const others = [await enqueueOne(store, { resource: 'http' }), await enqueueOne(store)];
    assert.deepEqual(idsOf((await claim(store)).jobs).sort(), others.sort());
  },

  'a claim names a gated resource when a job is due in its queues': async ({ store, advance }) => {
    await enqueueOne(store, { resource: 'smtp', queue: 'a' });
    await enqueueOne(store, { resource: 'smtp', queue: 'b', delayMs: HOUR });
    await trip(store, 'smtp');
    await advance(MINUTE);
    const named = async (queue: string): Promise<readonly string[]> =>
      (await claim(store, { queues: [quota({ queue })] })).gated;
    assert.deepEqual([await named('a'), await named('b'), await named('c')], [['smtp'], [], []]);
    await advance(HOUR);
    assert.deepEqual(await named('b'), ['smtp']);
  },

  'a claim names no resource whose gate is closed': async ({ store }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 3);
    await report(store, smtp, await runsOf(store, 3, refused));
    const { jobs, gated } = await claim(store, { limit: 1 });
    assert.deepEqual([jobs.length, gated], [1, []]);
  },

  'a claim names each resource once, whatever waits behind it': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'redrive', 2);
    await enqueueBehind(store, 'smtp', 'retry', 2);
    await store.enqueue([newJob({ resource: 'smtp' }), newJob({ resource: 'smtp', priority: 1 })]);
    await trip(store, 'smtp');
    await advance(MINUTE);
    assert.deepEqual((await claim(store)).gated, ['smtp']);
  },

  'a claim names only so many resources, those that have waited longest first': async ({ store, advance }) => {
    const names = Array.from({ length: GATED_NAMED + 2 }, (_, index) => `host-${index}`);
    for (const name of [...names].reverse()) await enqueueOne(store, { resource: name });
    for (const name of names) {
      await trip(store, name);
      await advance(MINUTE);
    }
    assert.deepEqual((await claim(store)).gated, names.slice(0, GATED_NAMED));
  },

  'a claim tells when a gated resource may be asked again': async (harness) => {
    const { store } = harness;
    await enqueueBehind(store, 'smtp', 'fresh', 2);
    await trip(store, 'smtp');
    await claimProbe(harness, 'smtp');
    const { probes } = (await ask(store, smtp)).state;
    const answer = await claim(store);
    assert.deepEqual([answer.jobs, answer.gated, answer.nextDueAt], [[], [], probes.slotUntil]);
    await enqueueOne(store, { delayMs: 1_000 });
    const { nextDueAt } = await claim(store);
    assert.ok(nextDueAt !== null && nextDueAt < probes.slotUntil);
  },

  'a job behind an open gate is not counted before it falls due': async ({ store, advance }) => {
    await enqueueOne(store, { resource: 'smtp', delayMs: HOUR });
    await trip(store, 'smtp');
    await advance(MINUTE);
    const { dueAt } = only(await store.list({ limit: 1 }));
    const answer = await claim(store);
    assert.deepEqual([answer.gated, answer.nextDueAt], [[], dueAt]);
  },

  'jobs of a gated resource wait also when no job of theirs had waited there before': async ({ store, advance }) => {
    await trip(store, 'smtp');
    await store.enqueue([
      newJob({ resource: 'smtp' }),
      newJob({ resource: 'smtp', queue: 'new' }),
      newJob({ resource: 'smtp', priority: 0 }),
    ]);
    const queues = [quota(), quota({ queue: 'new' })];
    assert.deepEqual((await claim(store, { queues })).jobs, []);
    await advance(MINUTE);
    assert.deepEqual((await claim(store, { queues })).gated, ['smtp']);
  },

  'a job that fails after its gate has opened waits behind it': async ({ store }) => {
    await store.enqueue([newJob({ resource: 'smtp' })]);
    const job = await claimOne(store);
    await trip(store, 'smtp');
    await settleOne(store, job, retryIn(0));
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'a suspect behind an open gate is tried when a probe may start': async (harness) => {
    const { store, advance } = harness;
    const [id] = await enqueueBehind(store, 'smtp', 'suspect', 1);
    await enqueueBehind(store, 'smtp', 'fresh', 1);
    const queues = [quota({ suspect: 1 })];
    await trip(store, 'smtp');
    await claimProbe(harness, 'smtp');
    const { slotUntil } = (await ask(store, smtp)).state.probes;
    const answer = await claim(store, { queues });
    assert.deepEqual([answer.jobs, answer.suspectsWait, answer.gated, answer.nextDueAt], [[], false, [], slotUntil]);
    await advance(MINUTE);
    assert.deepEqual([(await claim(store)).suspectsWait, (await claimGated(store, 'smtp')).jobs], [true, []]);
    assert.deepEqual(idsOf((await claim(store, { queues })).jobs), [id]);
  },

  'a suspect behind a gate that is pinned open is not tried': async ({ store, advance }) => {
    const [id] = await enqueueBehind(store, 'smtp', 'suspect', 1);
    const queues = [quota({ suspect: 1 })];
    assert.equal((await claim(store)).suspectsWait, true);
    await store.changeGate(smtp, 'open', 'ann');
    await advance(HOUR);
    const answer = await claim(store, { queues });
    assert.deepEqual([answer.jobs, answer.suspectsWait, answer.gated, answer.nextDueAt], [[], false, [], null]);
    await store.changeGate(smtp, 'reset', 'ann');
    assert.deepEqual(idsOf((await claim(store, { queues })).jobs), [id]);
  },

  'a suspect is tried while its gate is in the ramp, but not while it is held': async (harness) => {
    const { store, advance } = harness;
    const [id] = await enqueueBehind(store, 'smtp', 'suspect', 1);
    await enqueueBehind(store, 'smtp', 'fresh', 3);
    await trip(store, 'smtp');
    await recover(harness, 'smtp');
    const queues = [quota({ suspect: 1 })];
    assert.equal((await claim(store)).suspectsWait, true);
    const { state } = await report(store, smtp, await runsOf(store, 1, throttled(HOUR)));
    const held = await claim(store, { queues });
    assert.deepEqual([held.jobs, held.suspectsWait, held.nextDueAt], [[], false, state.heldUntil]);
    await advance(2 * HOUR);
    assert.deepEqual(idsOf((await claim(store, { queues })).jobs), [id]);
  },

  'a held queue behind an open gate is neither named nor served': async ({ store, advance }) => {
    const ids = await enqueueBehind(store, 'smtp', 'fresh', 1);
    await trip(store, 'smtp');
    await advance(MINUTE);
    for (const target of [{ queue: 'default' }, { resource: 'smtp' }]) {
      await store.hold(target, null);
      const answer = await claim(store);
      assert.deepEqual([answer.gated, answer.nextDueAt], [[], null]);
      const gated = await claimGated(store, 'smtp');
      assert.deepEqual([gated.jobs, gated.nextAt], [[], null]);
      await store.release(target);
      assert.deepEqual((await claim(store)).gated, ['smtp']);
    }
    assert.deepEqual(idsOf((await claimGated(store, 'smtp')).jobs), ids);
  },

  'a held queue is not served when its gate closes': async ({ store }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 1);
    await trip(store, 'smtp');
    await store.hold({ queue: 'default' }, null);
    await store.changeGate(smtp, 'reset', 'ann');
    assert.deepEqual((await claim(store)).jobs, []);
    await store.release({ queue: 'default' });
    assert.equal((await claim(store)).jobs.length, 1);
  },
});
