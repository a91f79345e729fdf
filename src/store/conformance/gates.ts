import assert from 'node:assert/strict';
import type { GateRef, Store } from '../store.ts';
import {
  claim,
  complete,
  enqueueOne,
  HOUR,
  idsOf,
  jobOf,
  MINUTE,
  only,
  pruneWith,
  quota,
  settleOne,
} from './builders.ts';
import {
  ask,
  claimGated,
  claimProbe,
  completed,
  enqueueBehind,
  gateOf,
  kept,
  refused,
  report,
  runsOf,
  spendBudget,
  trip,
} from './gate-builders.ts';
import { cases, type StoreCase } from './suite.ts';

const smtp = gateOf('smtp');
const DAY = 24 * HOUR;
const forEver = { completedMs: null, deadMs: null, cancelledMs: null };

/** A store deletes a bounded number of gates per call. */
async function pruneGates(store: Store): Promise<void> {
  for (let isDone = false; !isDone; ) {
    const pruned = await pruneWith(store, forEver, 1_000);
    assert.equal(pruned.jobs, 0);
    isDone = pruned.isDone;
  }
}

async function stored(store: Store): Promise<GateRef[]> {
  return (await store.gates({ limit: 100 })).map(({ gate }) => gate);
}

const orders: StoreCase[] = cases('changeGate', {
  'a gate that is pinned open admits nothing, not even a probe': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 2);
    const answer = await store.changeGate(smtp, 'open', 'ann');
    assert.deepEqual([answer.gate, answer.state.phase, answer.state.pin], [smtp, 'open', 'open']);
    await advance(DAY);
    const { jobs, gated, nextDueAt } = await claim(store);
    assert.deepEqual([jobs, gated, nextDueAt], [[], [], null]);
    const none = await claimGated(store, 'smtp');
    assert.deepEqual([none.jobs, none.nextAt], [[], null]);
  },

  'a gate that is pinned closed admits everything, whatever is reported': async ({ store }) => {
    await trip(store, 'smtp');
    const ids = await enqueueBehind(store, 'smtp', 'fresh', 3);
    const { state } = await store.changeGate(smtp, 'close', 'ann');
    assert.deepEqual([state.phase, state.pin], ['closed', 'closed']);
    const { state: after, events } = await report(store, smtp, await runsOf(store, 50, refused));
    assert.deepEqual([after.phase, events], ['closed', []]);
    assert.deepEqual(idsOf((await claim(store)).jobs), ids);
  },

  'a gate that is pinned closed charges no retries': async ({ store }) => {
    const ids = await enqueueBehind(store, 'smtp', 'retry', 3);
    await store.changeGate(smtp, 'close', 'ann');
    await spendBudget(store, 'smtp');
    assert.deepEqual(idsOf((await claim(store)).jobs).sort(), ids.sort());
  },

  'a pin stays until it is taken away': async ({ store, advance }) => {
    await store.changeGate(smtp, 'open', 'ann');
    await report(store, smtp, await runsOf(store, 50, completed));
    await advance(3 * DAY);
    await pruneGates(store);
    assert.equal((await ask(store, smtp)).state.pin, 'open');
  },

  'a gate that was pinned open finds out by probes': async ({ store }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 2);
    await store.changeGate(smtp, 'open', 'ann');
    const { state } = await store.changeGate(smtp, 'unpin', 'ben');
    assert.deepEqual([state.phase, state.pin], ['open', null]);
    assert.deepEqual((await claim(store)).gated, ['smtp']);
    assert.equal((await claimGated(store, 'smtp')).jobs.length, 1);
  },

  'a gate that was pinned closed goes back to its rules': async ({ store, advance }) => {
    await store.changeGate(smtp, 'close', 'ann');
    await advance(MINUTE);
    assert.equal((await store.changeGate(smtp, 'unpin', 'ben')).state.pin, null);
    await advance(MINUTE);
    await trip(store, 'smtp');
  },

  'a gate that is reset is closed': async ({ store }) => {
    const ids = await enqueueBehind(store, 'smtp', 'fresh', 3);
    await trip(store, 'smtp');
    const { state } = await store.changeGate(smtp, 'reset', 'ann');
    assert.deepEqual([state.phase, state.pin, state.window.streak.count], ['closed', null, 0]);
    assert.deepEqual(idsOf((await claim(store)).jobs), ids);
  },

  'every change by hand is in the history with its operator': async ({ store, advance }) => {
    const events = [];
    for (const order of ['open', 'unpin', 'close', 'reset'] as const) {
      events.unshift(...(await store.changeGate(smtp, order, `ann "${order}"`)).events);
      await advance(MINUTE);
    }
    const history = await store.gateHistory(smtp, 10);
    assert.deepEqual(history, events);
    assert.partialDeepStrictEqual(history, [
      { change: 'reset', rule: 'operator', who: 'ann "reset"', to: 'closed' },
      { change: 'pinned', who: 'ann "close"', from: 'open', to: 'closed' },
      { change: 'unpinned', who: 'ann "unpin"' },
      { change: 'pinned', who: 'ann "open"', from: 'closed', to: 'open' },
    ]);
    assert.deepEqual(await store.gateHistory(smtp, 2), events.slice(0, 2));
    assert.deepEqual(await store.gateHistory(gateOf('http'), 2), []);
  },

  'an order makes the row of a gate that has none': async ({ store }) => {
    const { state } = await store.changeGate(smtp, 'open', 'ann');
    assert.deepEqual(kept(only(await store.gates({ limit: 10 })).state), kept(state));
  },

  'a pin ends the ramp and the slot of a probe': async (harness) => {
    const { store } = harness;
    await enqueueBehind(store, 'smtp', 'fresh', 3);
    await trip(store, 'smtp');
    const job = await claimProbe(harness, 'smtp');
    await store.changeGate(smtp, 'close', 'ann');
    assert.equal((await claim(store)).jobs.length, 2);
    await settleOne(store, job, complete);
  },

  'a soft gate can be changed by hand too': async ({ store }) => {
    const soft = gateOf('email.send', 'job');
    const ids = await enqueueBehind(store, 'smtp', 'fresh', 2);
    assert.equal((await store.changeGate(soft, 'open', 'ann')).state.phase, 'open');
    assert.deepEqual(idsOf((await claim(store)).jobs), ids);
    assert.equal((await store.changeGate(soft, 'reset', 'ann')).state.phase, 'closed');
  },
});

const reading: StoreCase[] = cases('gates', {
  'gates that are not closed come first, and then those that were heard of last': async ({ store, advance }) => {
    const hear = async (name: string): Promise<void> => {
      await report(store, gateOf(name), await runsOf(store, 1, completed));
      await advance(1_000);
    };
    await trip(store, 'open-early');
    await advance(1_000);
    for (const name of ['quiet', 'middle', 'lately']) await hear(name);
    await trip(store, 'open-late');
    await advance(1_000);
    await hear('lately');
    const names = async (limit: number): Promise<string[]> =>
      (await store.gates({ limit })).map(({ gate: { name } }) => name);
    assert.deepEqual(await names(10), ['open-late', 'open-early', 'lately', 'middle', 'quiet']);
    assert.deepEqual(await names(2), ['open-late', 'open-early']);
  },

  'gates are selected by kind and by name': async ({ store }) => {
    const gates = [gateOf('a'), gateOf('b'), gateOf('a', 'job'), gateOf('webhook/a')];
    for (const gate of gates) await report(store, gate, await runsOf(store, 1, refused));
    const select = async (filter: { kind?: GateRef['kind']; name?: string }): Promise<string[]> =>
      (await store.gates({ ...filter, limit: 10 })).map(({ gate: { kind, name } }) => `${kind} ${name}`).sort();
    assert.deepEqual(await select({ name: 'a' }), ['job a', 'resource a']);
    assert.deepEqual(await select({ kind: 'job' }), ['job a']);
    assert.deepEqual(await select({ kind: 'parent' }), ['parent webhook']);
    assert.deepEqual(await select({ kind: 'resource', name: 'b' }), ['resource b']);
    assert.deepEqual(await select({ kind: 'job', name: 'b' }), []);
  },

  'a gate tells how many jobs wait behind it, in whatever queue and lane, unless it is not asked to': async (
    harness,
  ) => {
    const { store } = harness;
    await enqueueBehind(store, 'smtp', 'retry', 2);
    await enqueueBehind(store, 'smtp', 'suspect', 1);
    await enqueueBehind(store, 'smtp', 'fresh', 3);
    await enqueueOne(store, { resource: 'smtp', queue: 'other', delayMs: HOUR });
    await enqueueOne(store, { resource: 'http' });
    await trip(store, 'smtp');
    await report(store, gateOf('email.send', 'job'), await runsOf(store, 1, refused));
    const waiting = async (): Promise<(number | null)[]> =>
      (await store.gates({ limit: 10 })).map((gate) => gate.waiting);
    assert.deepEqual(await waiting(), [7, null]);
    await claimProbe(harness, 'smtp');
    assert.deepEqual(await waiting(), [6, null]);
    const uncounted = await store.gates({ limit: 10, skipWaiting: true });
    assert.deepEqual([uncounted.length, ...uncounted.map((gate) => gate.waiting)], [2, null, null]);
    assert.deepEqual(
      uncounted.map((gate) => gate.firstDueAt),
      [null, null],
    );
  },

  'a gate tells when the first job behind it is due': async ({ store }) => {
    await trip(store, 'smtp');
    const firstDueAt = async (): Promise<number | null | undefined> =>
      (await store.gates({ kind: 'resource', limit: 10 }))[0]?.firstDueAt;
    assert.equal(await firstDueAt(), null);
    await enqueueOne(store, { resource: 'smtp', delayMs: 2 * HOUR });
    const first = await enqueueOne(store, { resource: 'smtp', queue: 'other', delayMs: HOUR });
    assert.equal(await firstDueAt(), (await jobOf(store, first)).dueAt);
  },
});

const forgetting: StoreCase[] = cases('prune', {
  'a closed gate that is quiet goes, and its history stays': async ({ store, advance }) => {
    await store.changeGate(smtp, 'reset', 'ann');
    await report(store, smtp, await runsOf(store, 1, refused));
    await report(store, gateOf('email.send', 'job'), await runsOf(store, 1, refused));
    await report(store, gateOf('webhook/a'), await runsOf(store, 1, refused));
    await pruneGates(store);
    assert.equal((await stored(store)).length, 4);
    await advance(5 * MINUTE);
    await pruneGates(store);
    assert.deepEqual(await stored(store), []);
    assert.equal((await store.gateHistory(smtp, 10)).length, 1);
    await advance(31 * DAY);
    await pruneGates(store);
    assert.deepEqual(await store.gateHistory(smtp, 10), []);
  },

  'a gate that is open, or that jobs wait behind, is kept': async ({ store, advance }) => {
    await trip(store, 'open');
    await enqueueOne(store, { resource: 'waited-for', delayMs: HOUR });
    for (const name of ['waited-for', 'quiet']) await report(store, gateOf(name), await runsOf(store, 1, completed));
    await advance(5 * MINUTE);
    await pruneGates(store);
    assert.deepEqual(await stored(store), [gateOf('open'), gateOf('waited-for')]);
    assert.equal((await store.gateHistory(gateOf('open'), 10)).length, 1);
  },

  'the history of a gate goes with time also when its row stays': async ({ store, advance }) => {
    await store.changeGate(smtp, 'open', 'ann');
    await advance(20 * DAY);
    await store.changeGate(smtp, 'close', 'ann');
    await advance(20 * DAY);
    await pruneGates(store);
    assert.partialDeepStrictEqual(await store.gateHistory(smtp, 10), [{ change: 'pinned', to: 'closed' }]);
    assert.deepEqual([(await store.gateHistory(smtp, 10)).length, await stored(store)], [1, [smtp]]);
  },

  'jobs behind a gate that was forgotten start without asking it': async ({ store, advance }) => {
    await spendBudget(store, 'smtp');
    await advance(5 * MINUTE);
    await pruneGates(store);
    assert.deepEqual(await stored(store), []);
    const ids = await enqueueBehind(store, 'smtp', 'retry', 20);
    const { jobs, gated } = await claim(store, { queues: [quota()] });
    assert.deepEqual([idsOf(jobs).sort(), gated], [ids.sort(), []]);
  },
});

export const gateCases: readonly StoreCase[] = [...orders, ...reading, ...forgetting];
