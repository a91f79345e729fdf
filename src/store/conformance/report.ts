import assert from 'node:assert/strict';
import { foldRuns } from '../../gate/index.ts';
import { claim, HOUR, hostileTexts, idsOf, MINUTE, newJobs, retryIn, settlement } from './builders.ts';
import {
  ask,
  claimGated,
  claimProbe,
  completed,
  enqueueBehind,
  failProbe,
  gateOf,
  kept,
  recover,
  refused,
  report,
  runOf,
  runsOf,
  throttled,
  trip,
} from './gate-builders.ts';
import { cases, type StoreCase } from './suite.ts';

const smtp = gateOf('smtp');

const answering: StoreCase[] = cases('report', {
  'a gate without a row is closed, and asking for it makes none': async ({ store }) => {
    const { gate, state, events } = await ask(store, smtp);
    assert.deepEqual([gate, state.phase, events], [smtp, 'closed', []]);
    assert.deepEqual(await store.gates({ limit: 10 }), []);
  },

  'a report makes the row of its gate, and is answered with it': async ({ store }) => {
    const answer = await report(store, smtp, await runsOf(store, 3, completed));
    assert.equal(answer.state.heardAt, answer.now);
    const [stored, ...others] = await store.gates({ limit: 10 });
    assert.deepEqual([stored?.gate, others], [smtp, []]);
    assert.deepEqual(kept(stored?.state), kept(answer.state));
    assert.deepEqual(kept((await ask(store, smtp)).state), kept(answer.state));
  },

  'runs that were claimed long before the first report on their gate count': async ({ store, advance }) => {
    const runs = await runsOf(store, 12, refused);
    await advance(HOUR);
    assert.equal((await report(store, smtp, runs)).state.phase, 'open');
  },

  'a report adds to what others have reported': async ({ store }) => {
    for (const worker of ['a', 'b']) await report(store, smtp, await runsOf(store, 3, refused), worker);
    const { window } = (await ask(store, smtp)).state;
    assert.equal(window.streak.count, 6);
  },

  'answers come in the order of the reports, and reports on one gate follow each other': async ({ store }) => {
    const fold = async (worker: string) => foldRuns(worker, await runsOf(store, 6, refused), 0)[0] ?? null;
    const http = gateOf('http');
    const answers = await store.report([
      { gate: smtp, report: await fold('a') },
      { gate: http, report: null },
      { gate: smtp, report: await fold('b') },
    ]);
    assert.deepEqual(
      answers.map(({ gate, state, events }) => [gate, state.phase, events.length]),
      [
        [smtp, 'closed', 0],
        [http, 'closed', 0],
        [smtp, 'open', 1],
      ],
    );
  },

  'an empty batch is answered by nothing': async ({ store }) => {
    assert.deepEqual(await store.report([]), []);
  },

  'none of the reports that come in at once is lost': async ({ store }) => {
    const runs = await runsOf(store, 1, refused);
    const fold = (worker: string) => foldRuns(worker, runs, 0).map((one) => ({ gate: smtp, report: one }));
    await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((worker) => store.report(fold(worker))));
    assert.equal((await ask(store, smtp)).state.window.streak.count, 6);
  },

  'gates of one name but of different kinds are different gates': async ({ store }) => {
    await report(store, gateOf('smtp', 'job'), await runsOf(store, 12, refused));
    assert.equal((await ask(store, smtp)).state.phase, 'closed');
    assert.equal((await ask(store, gateOf('smtp', 'job'))).state.phase, 'open');
    assert.deepEqual(await store.gateHistory(smtp, 10), []);
  },

  'gates may have any name': async ({ store, advance }) => {
    const names = [...hostileTexts, 'x'.repeat(200), '/', 'a/b/c', "webhook/'; --", 'ü'.repeat(100)];
    for (const name of names) {
      const [id] = await enqueueBehind(store, name, 'fresh', 1);
      await trip(store, name);
      await advance(MINUTE);
      const answer = await claim(store);
      assert.deepEqual([answer.jobs, answer.gated], [[], [name]]);
      assert.deepEqual(idsOf((await claimGated(store, name)).jobs), [id]);
      const [stored] = await store.gates({ kind: 'resource', name, limit: 10 });
      assert.deepEqual([stored?.gate, stored?.state.phase], [gateOf(name), 'open']);
      assert.equal((await store.gateHistory(gateOf(name), 10)).length, 1);
      // Its job runs, so no claim of the next name sees it.
    }
  },
});

const judging: StoreCase[] = cases('report', {
  'a gate opens when the runs of claimed jobs fail one after the other': async ({ store }) => {
    await store.enqueue(newJobs(12, { resource: 'smtp' }));
    const { jobs } = await claim(store);
    const runs = jobs.map((job) => runOf(job, refused));
    const answer = await report(store, smtp, runs);
    assert.equal(answer.state.phase, 'open');
    assert.partialDeepStrictEqual(answer.events, [
      { change: 'opened', from: 'closed', to: 'open', rule: 'fast', who: null, epoch: answer.state.epoch },
    ]);
    await store.settle(jobs.map((job) => settlement(job, retryIn(0))));
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'what happened to a gate is kept, newest first, with its figures': async (harness) => {
    const { store } = harness;
    await enqueueBehind(store, 'smtp', 'fresh', 3);
    const opened = await trip(store, 'smtp');
    const recovering = await recover(harness, 'smtp');
    const history = await store.gateHistory(smtp, 10);
    assert.deepEqual(history, [...recovering.events, ...opened.events]);
    assert.partialDeepStrictEqual(history[1], { rule: 'fast', figures: { environment: 12, streak: 12 } });
    assert.deepEqual(await store.gateHistory(smtp, 1), recovering.events);
  },

  'a gate that time alone opens is found open by the one who asks': async ({ store, advance }) => {
    await report(store, smtp, await runsOf(store, 4, refused));
    await advance(MINUTE);
    const { state, events } = await ask(store, smtp);
    assert.deepEqual([state.phase, events[0]?.rule], ['open', 'lone']);
    assert.equal((await ask(store, smtp)).events.length, 0);
    assert.equal((await store.gateHistory(smtp, 10)).length, 1);
  },

  'runs that were claimed before a transition are no evidence after it': async (harness) => {
    const { store, advance } = harness;
    const late = await runsOf(store, 12, refused);
    await enqueueBehind(store, 'smtp', 'fresh', 3);
    await trip(store, 'smtp');
    const { state } = await recover(harness, 'smtp');
    assert.equal((await report(store, smtp, late)).state.epoch, state.epoch);
    await advance(MINUTE);
    assert.equal((await ask(store, smtp)).state.phase, 'closed');
    assert.equal((await report(store, smtp, late)).state.phase, 'closed');
  },

  'the failure of a probe keeps the gate open': async (harness) => {
    const { store } = harness;
    await enqueueBehind(store, 'smtp', 'fresh', 2);
    const { state } = await trip(store, 'smtp');
    const job = await claimProbe(harness, 'smtp');
    const { state: after } = await failProbe(store, 'smtp', job);
    assert.deepEqual([after.phase, after.epoch, after.probes.slotUntil], ['open', state.epoch, 0]);
    assert.ok(after.probes.intervalMs > state.probes.intervalMs);
  },

  'a wait that was asked for holds the resource': async ({ store, advance }) => {
    const ids = await enqueueBehind(store, 'smtp', 'fresh', 3);
    const { state, now, events } = await report(store, smtp, await runsOf(store, 1, throttled(HOUR / 2)));
    assert.equal(state.heldUntil, now + HOUR / 2);
    assert.deepEqual(
      events.map(({ change }) => change),
      ['held'],
    );
    const answer = await claim(store);
    assert.deepEqual([answer.jobs, answer.gated, answer.nextDueAt], [[], [], state.heldUntil]);
    const gated = await claimGated(store, 'smtp');
    assert.deepEqual([gated.jobs, gated.nextAt], [[], state.heldUntil]);
    await advance(HOUR);
    assert.deepEqual((await claim(store)).gated, ['smtp']);
    assert.deepEqual(idsOf((await claimGated(store, 'smtp')).jobs), ids);
  },

  'a hostile wait holds no longer than an hour, or not at all': async ({ store }) => {
    for (const [retryAfterMs, heldMs] of [
      [-1, 0],
      [Number.NaN, 0],
      [Number.POSITIVE_INFINITY, HOUR],
      [9e15, HOUR],
    ] as const) {
      const name = `asks for ${retryAfterMs}`;
      const { state, now } = await report(store, gateOf(name), await runsOf(store, 1, throttled(retryAfterMs)));
      assert.equal(Math.max(state.heldUntil, now), now + heldMs);
    }
  },

  'a soft gate judges an outage, and holds nothing': async ({ store }) => {
    const ids = await enqueueBehind(store, 'email.send', 'fresh', 3);
    const soft = gateOf('email.send', 'job');
    const { state, events } = await report(store, soft, await runsOf(store, 12, refused));
    assert.deepEqual([state.phase, events[0]?.change], ['open', 'opened']);
    const { jobs, gated } = await claim(store);
    assert.deepEqual([idsOf(jobs), gated], [ids, []]);
    assert.deepEqual(await store.gateHistory(soft, 10), events);
    const over = await report(store, soft, await runsOf(store, 100, completed));
    assert.deepEqual([over.state.phase, over.events[0]?.change], ['closed', 'closed']);
  },
});

const keyed: StoreCase[] = cases('report', {
  'a keyed gate that is well needs no row of its own': async ({ store }) => {
    const { state } = await report(store, gateOf('webhook/a.example'), await runsOf(store, 5, completed));
    assert.deepEqual([state.phase, state.keyed], ['closed', true]);
    const stored = await store.gates({ limit: 10 });
    assert.deepEqual(
      stored.map(({ gate }) => gate),
      [gateOf('webhook', 'parent')],
    );
  },

  'a keyed gate has a row from its first failure on': async ({ store }) => {
    const gate = gateOf('webhook/a.example');
    await report(store, gate, await runsOf(store, 1, refused));
    await report(store, gate, await runsOf(store, 1, completed));
    const [stored] = await store.gates({ kind: 'resource', limit: 10 });
    assert.deepEqual([stored?.gate, stored?.state.window.streak.count], [gate, 0]);
  },

  'a gate opens at its first failure while most gates of its parent fail': async ({ store }) => {
    const one = foldRuns('worker-1', await runsOf(store, 12, refused), 0)[0] ?? null;
    const hosts = Array.from({ length: 20 }, (_, index) => gateOf(`webhook/host-${index}`));
    const answers = await store.report(hosts.map((gate) => ({ gate, report: one })));
    assert.deepEqual(new Set(answers.map(({ state }) => state.phase)), new Set(['open']));
    const parent = gateOf('webhook', 'parent');
    assert.equal((await ask(store, parent)).state.phase, 'open');
    assert.partialDeepStrictEqual(await store.gateHistory(parent, 10), [{ change: 'opened' }]);
    const next = await report(store, gateOf('webhook/next'), await runsOf(store, 1, refused));
    assert.deepEqual([next.state.phase, next.events[0]?.rule], ['open', 'parent down']);
    const other = await report(store, gateOf('callback/next'), await runsOf(store, 1, refused));
    assert.equal(other.state.phase, 'closed');
  },

  'the gates of a parent are counted over all reports of the last minute': async ({ store, advance }) => {
    const parent = gateOf('webhook', 'parent');
    for (let host = 0; host < 19; host++) {
      await trip(store, `webhook/host-${host}`);
      await advance(1_000);
    }
    assert.equal((await ask(store, parent)).state.phase, 'closed');
    await trip(store, 'webhook/host-19');
    assert.equal((await ask(store, parent)).state.phase, 'open');
  },

  'gates of a parent that opened earlier than a minute ago do not count': async (harness) => {
    const { store, advance } = harness;
    for (let host = 0; host < 19; host++) await trip(store, `webhook/host-${host}`);
    await advance(2 * MINUTE);
    for (let host = 0; host < 19; host++) {
      const { epoch } = (await ask(store, gateOf(`webhook/host-${host}`))).state;
      await report(store, gateOf(`webhook/host-${host}`), await runsOf(store, 1, refused, { epoch }));
    }
    await advance(2_000);
    for (let host = 19; host < 22; host++) await trip(store, `webhook/host-${host}`);
    assert.equal((await ask(store, gateOf('webhook', 'parent'))).state.phase, 'closed');
  },

  'gates of a parent that were not heard of for a minute do not count': async ({ store, advance }) => {
    for (let host = 0; host < 60; host++)
      await report(store, gateOf(`webhook/${host}`), await runsOf(store, 1, refused));
    await advance(2 * MINUTE);
    for (let host = 60; host < 79; host++) await trip(store, `webhook/${host}`);
    await advance(2_000);
    await trip(store, 'webhook/79');
    assert.equal((await ask(store, gateOf('webhook', 'parent'))).state.phase, 'open');
  },

  'gates of another parent do not count, nor does the name of the parent alone': async ({ store, advance }) => {
    for (let host = 0; host < 19; host++) await trip(store, `callback/host-${host}`);
    await advance(2_000);
    for (const name of ['webhook/a', 'webhook', 'webhooks/a', 'callback']) await trip(store, name);
    for (const name of ['webhook', 'callback']) {
      assert.equal((await ask(store, gateOf(name, 'parent'))).state.phase, 'closed');
    }
  },

  'the parent is what stands before the first slash': async ({ store }) => {
    await report(store, gateOf('webhook/a/b'), await runsOf(store, 1, refused));
    await report(store, gateOf('/a'), await runsOf(store, 1, refused));
    const parents = (await store.gates({ kind: 'parent', limit: 10 })).map(({ gate }) => gate.name);
    assert.deepEqual(parents.sort(), ['', 'webhook']);
  },
});

export const reportCases: readonly StoreCase[] = [...answering, ...judging, ...keyed];
