import assert from 'node:assert/strict';
import { childrenSpanMs } from '../../gate/index.ts';
import { CLAIM_BYTES, type ClaimedJob } from '../store.ts';
import {
  claim,
  claimOne,
  claimRequest,
  complete,
  countLanes,
  enqueueInLane,
  enqueueOne,
  giveBack,
  HOUR,
  idsOf,
  jobOf,
  LEASE,
  MINUTE,
  newJob,
  newJobs,
  only,
  quota,
  retryIn,
  settlement,
  settleOne,
  timeOf,
} from './builders.ts';
import {
  ask,
  claimGated,
  claimProbe,
  completed,
  enqueueBehind,
  failProbe,
  gateOf,
  handedBack,
  kept,
  recover,
  refused,
  report,
  runOf,
  runsOf,
  spendBudget,
  trip,
} from './gate-builders.ts';
import { cases, type StoreCase, type StoreHarness } from './suite.ts';

const smtp = gateOf('smtp');
/** What a worker of an earlier deploy says of itself. */
const older: ReadonlyMap<string, number> = new Map([['email.send', 1]]);

const probes: StoreCase[] = cases('claimGated', {
  'nothing is taken behind a gate that has no row or is closed': async ({ store }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 3);
    const without = await claimGated(store, 'smtp');
    assert.deepEqual([without.jobs, without.nextAt, without.events], [[], null, []]);
    await report(store, smtp, await runsOf(store, 3, completed));
    assert.deepEqual((await claimGated(store, 'smtp')).jobs, []);
    assert.equal((await claim(store)).jobs.length, 3);
  },

  'an open gate gives one probe, and no second one while its slot lasts': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 5);
    const { state } = await trip(store, 'smtp');
    await advance(MINUTE);
    const first = await claimGated(store, 'smtp', { worker: 'a', leaseMs: LEASE });
    const job = only(first.jobs);
    assert.partialDeepStrictEqual(job, {
      worker: 'a',
      run: 1,
      attempts: 1,
      lane: 'fresh',
      resource: 'smtp',
      gateEpoch: state.epoch,
      claimedAt: first.now,
      leaseEndsAt: first.now + LEASE,
    });
    assert.equal((await jobOf(store, job.id)).state, 'running');
    const { slotUntil } = (await ask(store, smtp)).state.probes;
    for (const worker of ['a', 'b']) {
      const next = await claimGated(store, 'smtp', { worker });
      assert.deepEqual([next.jobs, next.nextAt], [[], slotUntil]);
    }
    await advance(MINUTE);
    assert.equal((await claimGated(store, 'smtp')).jobs.length, 1);
  },

  'of many workers that ask at once, one gets the probe': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 20);
    await trip(store, 'smtp');
    await advance(MINUTE);
    const workers = Array.from({ length: 8 }, (_, index) => `worker-${index}`);
    const claims = await Promise.all(workers.map((worker) => claimGated(store, 'smtp', { worker })));
    assert.equal(claims.flatMap(({ jobs }) => jobs).length, 1);
    assert.equal((await store.list({ state: 'running', limit: 100 })).length, 1);
  },

  'a gate that has just opened gives no probe yet': async ({ store }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 3);
    const { state } = await trip(store, 'smtp');
    const { jobs, now } = await claimGated(store, 'smtp');
    // A machine that is slow enough has reached the time of the first probe.
    assert.ok(jobs.length === 0 || now >= state.probes.at);
  },

  'a probe comes from the queues of the request': async ({ store, advance }) => {
    const there = await enqueueOne(store, { resource: 'smtp', queue: 'there' });
    await enqueueBehind(store, 'smtp', 'fresh', 5);
    await trip(store, 'smtp');
    await advance(MINUTE);
    const elsewhere = await claimGated(store, 'smtp', { queues: [quota({ queue: 'elsewhere' })] });
    assert.deepEqual([elsewhere.jobs, elsewhere.nextAt], [[], null]);
    const { jobs } = await claimGated(store, 'smtp', { queues: [quota({ queue: 'there' })] });
    assert.deepEqual(idsOf(jobs), [there]);
  },

  'a retry and a redriven job may be the probe': async (harness) => {
    const { store } = harness;
    const ids = {
      retry: await enqueueBehind(store, 'a', 'retry', 1),
      redrive: await enqueueBehind(store, 'b', 'redrive', 1),
    };
    await trip(store, 'a');
    await trip(store, 'b');
    assert.partialDeepStrictEqual(await claimProbe(harness, 'a'), { id: ids.retry[0], lane: 'retry', attempts: 2 });
    assert.partialDeepStrictEqual(await claimProbe(harness, 'b'), { id: ids.redrive[0], lane: 'redrive' });
  },

  'a job that is not due is no probe': async ({ store, advance }) => {
    await enqueueOne(store, { resource: 'smtp', delayMs: HOUR });
    await trip(store, 'smtp');
    await advance(MINUTE);
    const { jobs, nextAt } = await claimGated(store, 'smtp');
    assert.deepEqual([jobs, nextAt], [[], null]);
  },

  'a probe is one of the first ten due jobs': async (harness) => {
    const { store, advance } = harness;
    for (const resource of ['a', 'b', 'c']) {
      const first = await enqueueBehind(store, resource, 'fresh', 10);
      await advance(MINUTE);
      await enqueueBehind(store, resource, 'fresh', 90);
      await trip(store, resource);
      assert.ok(first.includes((await claimProbe(harness, resource)).id));
    }
  },

  'however many jobs are due before it behind a full key, a job that may start becomes the probe': async (harness) => {
    const { store, advance } = harness;
    const limits = [{ limit: 'shop', key: 'a' }];
    await store.writeLimits([
      { limit: 'shop', key: null, source: 'code', settings: { concurrency: 1, total: null, rate: null } },
    ]);
    await store.enqueue(newJobs(20, { resource: 'smtp', limits }));
    const first = only((await store.claimLimited({ ...claimRequest(), limit: 5 })).jobs);
    await advance(1);
    // It keeps its key's turn, so that the others wait for it.
    await settleOne(store, first, retryIn(1));
    await trip(store, 'smtp');
    assert.equal((await claimProbe(harness, 'smtp')).id, first.id);
  },

  'a job that failed as a probe is not the next one while others are due': async (harness) => {
    const { store } = harness;
    await enqueueBehind(store, 'smtp', 'fresh', 1);
    await trip(store, 'smtp');
    const first = await claimProbe(harness, 'smtp');
    await failProbe(store, 'smtp', first);
    await harness.advance(MINUTE);
    await enqueueBehind(store, 'smtp', 'fresh', 5);
    const second = await claimProbe(harness, 'smtp', { worker: 'worker-2' });
    assert.notEqual(second.id, first.id);
  },

  'a probe is drawn from the jobs whose name and version the worker knows': async (harness) => {
    const { store, advance } = harness;
    for (const resource of ['a', 'b', 'c']) {
      await store.enqueue([...newJobs(4, { resource, name: 'new' }), ...newJobs(4, { resource, version: 2 })]);
      await advance(1);
      const known = newJobs(1, { resource, version: 1 });
      await store.enqueue(known);
      await trip(store, resource);
      const probe = await claimProbe(harness, resource, { knows: older });
      assert.deepEqual([probe.id, probe.gateEpoch > 0], [known[0]?.id, true]);
      // A worker that says nothing of what it knows may get any.
      await report(store, gateOf(resource), [runOf(probe, completed)]);
      assert.ok((await claimProbe(harness, resource)).gateEpoch > 0);
    }
  },

  'where a worker can run none of the first jobs, it gets them to move them aside, and the slot stays free': async ({
    store,
    advance,
  }) => {
    await store.enqueue(newJobs(12, { resource: 'smtp', version: 2 }));
    await advance(1);
    const known = newJobs(1, { resource: 'smtp', version: 1 });
    await store.enqueue(known);
    await trip(store, 'smtp');
    await advance(MINUTE);
    const { state } = await ask(store, smtp);
    for (let moved = 0; moved < 3; moved++) {
      const { jobs, nextAt, now } = await claimGated(store, 'smtp', { knows: older, worker: 'old' });
      assert.deepEqual([only(jobs).version, only(jobs).gateEpoch, nextAt !== null && nextAt <= now], [2, 0, true]);
      const aside = { version: 2, isRejected: false };
      await settleOne(store, only(jobs), { kind: 'release', delayMs: 0, rule: 'no-handler', aside });
    }
    assert.deepEqual(kept((await ask(store, smtp)).state), kept(state));
    // Nine others are before it now, so it is among the first ten.
    const probe = only((await claimGated(store, 'smtp', { knows: older, worker: 'old' })).jobs);
    assert.deepEqual([probe.id, probe.gateEpoch], [known[0]?.id, state.epoch]);
    await report(store, smtp, [runOf(probe, completed)], 'old');
    const newer = new Map([['email.send', 2]]);
    assert.ok(only((await claimGated(store, 'smtp', { knows: newer })).jobs).gateEpoch > 0);
  },

  'a probe that was handed back lets the next one go at once, also behind a key': async ({ store, advance }) => {
    for (const resource of ['smtp', 'webhook/a']) {
      await enqueueBehind(store, resource, 'fresh', 2);
      await trip(store, resource);
      await advance(MINUTE);
      const { intervalMs } = (await ask(store, gateOf(resource))).state.probes;
      for (let probes = 0; probes < 20; probes++) {
        const probe = only((await claimGated(store, resource)).jobs);
        await report(store, gateOf(resource), [runOf(probe, handedBack)]);
        await settleOne(store, probe, giveBack('release'));
      }
      assert.equal((await ask(store, gateOf(resource))).state.probes.intervalMs, intervalMs);
    }
  },

  'a request without room gets no probe, and leaves the slot to others': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 2);
    await trip(store, 'smtp');
    await advance(MINUTE);
    assert.deepEqual((await claimGated(store, 'smtp', { limit: 0 })).jobs, []);
    assert.equal((await claimGated(store, 'smtp')).jobs.length, 1);
  },

  'no retry is a probe beyond what may run of a queue': async ({ store, advance }) => {
    await enqueueInLane(store, 'retry', 1);
    const running = await claimOne(store);
    await enqueueBehind(store, 'smtp', 'retry', 3);
    await trip(store, 'smtp');
    await advance(MINUTE);
    const queues = [quota({ maxRetriesInFlight: 1 })];
    assert.deepEqual((await claimGated(store, 'smtp', { queues })).jobs, []);
    const fresh = await enqueueBehind(store, 'smtp', 'fresh', 1);
    assert.deepEqual(idsOf((await claimGated(store, 'smtp', { queues })).jobs), fresh);
    await advance(MINUTE);
    await settleOne(store, running, complete);
    assert.equal((await claimGated(store, 'smtp', { queues })).jobs.length, 1);
  },

  'the probes of all gates of a parent keep to a rate': async ({ store, advance }) => {
    const hosts = Array.from({ length: 30 }, (_, index) => `webhook/host-${index}`);
    await store.enqueue(hosts.map((resource) => newJob({ resource })));
    for (const host of hosts) await trip(store, host);
    await advance(childrenSpanMs);
    // An answer's own time may be later than the time at which its probe was admitted, so the span begins before the first.
    const from = await timeOf(store);
    const claims = [];
    for (const host of hosts) claims.push(await claimGated(store, host));
    const spanMs = (claims.at(-1)?.now ?? 0) - from;
    const probed = claims.filter(({ jobs }) => jobs.length > 0).length;
    assert.ok(probed >= 10 && probed <= 10 + spanMs / 100, `${probed} probes within ${spanMs} ms`);
    for (const { jobs, now, nextAt } of claims) assert.ok(jobs.length > 0 || (nextAt !== null && nextAt > now));
    // The slot of a gate that had to wait for the others is still free.
    await advance(5_000);
    const later = hosts[claims.findIndex(({ jobs }) => jobs.length === 0)];
    if (later !== undefined) assert.equal((await claimGated(store, later)).jobs.length, 1);
  },
});

/** Signs of life in two reports that prove a rate of about 100 a second. */
async function provePeak({ store, advance }: StoreHarness): Promise<void> {
  for (let reports = 0; reports < 4; reports++) {
    await report(store, smtp, await runsOf(store, 1_000, completed));
    await advance(10_000);
  }
}

const ramps: StoreCase[] = cases('claimGated', {
  'a ramp gives no more than its rate, over all workers and queues': async (harness) => {
    const { store } = harness;
    await provePeak(harness);
    await enqueueBehind(store, 'smtp', 'fresh', 50);
    await store.enqueue(newJobs(50, { resource: 'smtp', queue: 'other' }));
    await trip(store, 'smtp');
    const { state, now: from } = await recover(harness, 'smtp');
    const limit = state.ramp?.limit ?? 0;
    assert.ok(limit > 2, `a rate of ${limit}/s`);
    const claimed: ClaimedJob[] = [];
    let until = from;
    for (const worker of ['a', 'b', 'c', 'd']) {
      const queues = [quota({ queue: 'other', share: 1 }), quota()];
      const { jobs, now } = await claimGated(store, 'smtp', { worker, queues });
      claimed.push(...jobs);
      until = now;
    }
    const most = (limit * (until - from + 500)) / 1_000 + 1;
    assert.ok(claimed.length >= 2 && claimed.length <= most, `${claimed.length} of at most ${most}`);
    assert.deepEqual(new Set(claimed.map(({ gateEpoch }) => gateEpoch)), new Set([state.epoch]));
    assert.deepEqual((await claim(store)).jobs, []);
  },

  'a ramp keeps places for retries while fresh jobs are due': async (harness) => {
    const { store } = harness;
    await provePeak(harness);
    const retries = await enqueueBehind(store, 'smtp', 'retry', 10);
    await enqueueBehind(store, 'smtp', 'fresh', 50);
    await trip(store, 'smtp');
    await recover(harness, 'smtp');
    const { jobs } = await claimGated(store, 'smtp', { limit: 2, queues: [quota({ retry: 1 })] });
    assert.deepEqual(countLanes(jobs), { retry: 1, fresh: 1 });
    assert.ok(retries.includes(jobs.find(({ lane }) => lane === 'retry')?.id ?? ''));
  },

  'a rate that is not used any more closes the gate, and then everything starts': async (harness) => {
    const { store, advance } = harness;
    await enqueueBehind(store, 'smtp', 'fresh', 30);
    await trip(store, 'smtp');
    await recover(harness, 'smtp');
    await advance(MINUTE);
    assert.deepEqual((await claim(store)).gated, ['smtp']);
    const { jobs, events } = await claimGated(store, 'smtp', { limit: 20 });
    assert.deepEqual([jobs.length, events.map(({ change }) => change)], [20, ['closed']]);
    assert.deepEqual(new Set(jobs.map(({ gateEpoch }) => gateEpoch)), new Set([0]));
    assert.partialDeepStrictEqual(await store.gateHistory(smtp, 1), events);
    const rest = await claim(store);
    assert.deepEqual([rest.jobs.length, rest.gated, rest.jobs[0]?.gateEpoch], [7, [], 0]);
    await enqueueOne(store, { resource: 'smtp', queue: 'new' });
    assert.equal((await claim(store, { queues: [quota({ queue: 'new' })] })).jobs.length, 1);
  },

  'a probe that fails in the ramp opens the gate again, under a new epoch': async (harness) => {
    const { store } = harness;
    await enqueueBehind(store, 'smtp', 'fresh', 5);
    await trip(store, 'smtp');
    const { state } = await recover(harness, 'smtp');
    const runs = await runsOf(store, 12, refused, { epoch: state.epoch });
    const { state: after, events } = await report(store, smtp, runs);
    assert.deepEqual([after.phase, events[0]?.change], ['open', 'opened']);
    assert.ok(after.epoch > state.epoch);
    assert.equal((await claimProbe(harness, 'smtp')).gateEpoch, after.epoch);
  },
});

const budgets: StoreCase[] = cases('claimGated', {
  'retries alone wait while the retry budget is low': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'retry', 3);
    const { state } = await spendBudget(store, 'smtp');
    assert.equal(state.phase, 'closed');
    const redriven = await enqueueBehind(store, 'smtp', 'redrive', 1);
    const fresh = await enqueueBehind(store, 'smtp', 'fresh', 2);
    const { jobs, gated, now, nextDueAt } = await claim(store);
    assert.deepEqual([idsOf(jobs), gated], [[...fresh, ...redriven], []]);
    assert.ok(nextDueAt !== null && nextDueAt > now && nextDueAt <= now + 12_000);
    const early = await claimGated(store, 'smtp');
    assert.deepEqual([early.jobs, early.nextAt], [[], nextDueAt]);
    await advance(MINUTE);
    assert.deepEqual((await claim(store)).gated, ['smtp']);
  },

  'no more retries start than the budget pays for': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'retry', 30);
    await spendBudget(store, 'smtp');
    await advance(MINUTE);
    const fresh = await enqueueBehind(store, 'smtp', 'fresh', 5);
    const { jobs } = await claimGated(store, 'smtp');
    assert.deepEqual([jobs.length, countLanes(jobs)], [10, { retry: 10 }]);
    // With an epoch, so that their report does not charge them again.
    assert.ok(jobs.every(({ gateEpoch }) => gateEpoch !== 0));
    const next = await claimGated(store, 'smtp');
    assert.ok(next.jobs.length <= 1 + (next.now - (jobs[0]?.claimedAt ?? 0)) / 1_000);
    assert.deepEqual(idsOf((await claim(store)).jobs), fresh);
  },

  'retries of other resources, and those of none, are not charged': async ({ store }) => {
    const others = [...(await enqueueBehind(store, 'http', 'retry', 3)), ...(await enqueueInLane(store, 'retry', 3))];
    await spendBudget(store, 'smtp');
    assert.deepEqual(idsOf((await claim(store)).jobs).sort(), others.sort());
  },

  'no more retries start than may run of a queue': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'retry', 20);
    await spendBudget(store, 'smtp');
    await advance(MINUTE);
    const queues = [quota({ maxRetriesInFlight: 7 })];
    const { jobs } = await claimGated(store, 'smtp', { queues });
    assert.equal(jobs.length, 7);
    assert.deepEqual((await claimGated(store, 'smtp', { queues })).jobs, []);
    await store.settle(jobs.slice(0, 2).map((job) => settlement(job, complete)));
    assert.equal((await claimGated(store, 'smtp', { queues })).jobs.length, 2);
  },

  'a maxRetriesInFlight that no queue can reach caps nothing behind a gate either': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'retry', 5);
    await spendBudget(store, 'smtp');
    await advance(MINUTE);
    const queues = [quota({ maxRetriesInFlight: 2 ** 31 })];
    assert.ok((await claimGated(store, 'smtp', { queues })).jobs.length > 0);
  },

  'a gated claim stops at the bytes that a claim may carry': async ({ store, advance }) => {
    const payload = JSON.stringify('x'.repeat(CLAIM_BYTES / 4 - 2));
    for (let made = 0; made < 6; made++) await store.enqueue([newJob({ resource: 'smtp', payload })]);
    for (let claims = 0; claims < 2; claims++) {
      const { jobs } = await claim(store);
      await store.settle(jobs.map((job) => settlement(job, retryIn(MINUTE))));
    }
    await spendBudget(store, 'smtp');
    await advance(2 * MINUTE);
    assert.equal((await claimGated(store, 'smtp')).jobs.length, 4);
    await advance(MINUTE);
    assert.equal((await claimGated(store, 'smtp')).jobs.length, 2);
  },

  'a suspect worker alone is kept from its jobs': async ({ store, advance }) => {
    await enqueueBehind(store, 'smtp', 'fresh', 10);
    await report(store, smtp, await runsOf(store, 100, completed), 'good');
    const { state } = await report(store, smtp, await runsOf(store, 12, refused), 'bad');
    assert.equal(state.phase, 'closed');
    assert.deepEqual((await claim(store)).gated, ['smtp']);
    const kept = await claimGated(store, 'smtp', { worker: 'bad', limit: 5 });
    const until = state.workers[0]?.until ?? 0;
    assert.ok(kept.now >= until || (kept.jobs.length === 0 && kept.nextAt === until));
    assert.equal((await claimGated(store, 'smtp', { worker: 'good', limit: 5 })).jobs.length, 5);
    await advance(10_000);
    assert.equal((await claimGated(store, 'smtp', { worker: 'bad', limit: 5 })).jobs.length, 1);
  },

  'a run that a gate admitted is reported without charging the budget again': async (harness) => {
    const { store } = harness;
    await enqueueBehind(store, 'smtp', 'retry', 3);
    await trip(store, 'smtp');
    const before = (await ask(store, smtp)).state.budget.tokens;
    const job = await claimProbe(harness, 'smtp');
    const { state } = await report(store, smtp, [runOf(job, completed)]);
    assert.ok(state.budget.tokens >= before);
  },
});

export const claimGatedCases: readonly StoreCase[] = [...probes, ...ramps, ...budgets];
