import assert from 'node:assert/strict';
import type { Decision } from '../../retry/decision.ts';
import { withFingerprint } from '../../untrusted/stored-error.ts';
import type { LedgerJob, LedgerRequest } from '../ledger.ts';
import type { NewJob, Store } from '../store.ts';
import {
  cancelNow,
  claim,
  claimOne,
  complete,
  die,
  enqueueOne,
  giveBack,
  idsOf,
  MINUTE,
  newJobs,
  only,
  policy,
  redrive,
  retryIn,
  settlement,
  settleOne,
  startOne,
  storedError,
  timeOf,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const disk = withFingerprint({ ...storedError('the disk is full'), stack: 'at disk.ts:1' });
const network = withFingerprint(storedError('the network is away'));

/** Runs a job through these decisions, the last of which ends it. */
async function runThrough(
  store: Store,
  decisions: readonly Decision[],
  changes: Partial<NewJob> = {},
): Promise<string> {
  let job = await startOne(store, changes);
  for (const [index, decision] of decisions.entries()) {
    if (index > 0) job = await claimOne(store);
    const isFailure = decision.kind === 'retry' || decision.kind === 'dead' || decision.kind === 'defer';
    await settleOne(store, job, decision, { error: isFailure ? disk : null });
  }
  return job.id;
}

/** All pages, and how many there were. */
async function readAll(
  store: Store,
  request: Partial<LedgerRequest> = {},
): Promise<{ jobs: LedgerJob[]; pages: number }> {
  const jobs: LedgerJob[] = [];
  let pages = 0;
  for (let after: string | null = null; ; ) {
    const from: { after?: string } = after === null ? {} : { after };
    const page = await store.ledger({ since: 0, limit: 100, ...request, ...from });
    jobs.push(...page.jobs);
    pages++;
    if (page.next === null) return { jobs, pages };
    assert.ok(pages < 100, 'the pages do not end');
    after = page.next;
  }
}

/** Jobs that completed, in the order in which they ended. */
async function completeSome(store: Store, count: number): Promise<string[]> {
  await store.enqueue(newJobs(count));
  const { jobs } = await claim(store, { limit: count });
  assert.equal(jobs.length, count);
  for (const job of jobs) await store.settle([settlement(job, complete)]);
  return idsOf(jobs);
}

export const ledgerCases: readonly StoreCase[] = cases('ledger', {
  async 'gives ended jobs with all their runs, as `runs` gives them'({ store }) {
    const once = await runThrough(store, [complete]);
    const thrice = await runThrough(store, [retryIn(0), giveBack('defer'), complete]);
    const dead = await runThrough(store, [retryIn(0), die()], { name: 'report.make', resource: 'smtp' });
    const { jobs } = await readAll(store);
    assert.deepEqual(new Set(idsOf(jobs)), new Set([once, thrice, dead]));
    for (const job of jobs) {
      const runs = await store.runs(job.id);
      assert.deepEqual(
        job.runs,
        runs.map(({ run, attempt, outcome, counted, startedAt, endedAt, decision, error }) => {
          const fingerprint = error?.fingerprint ?? null;
          return { run, attempt, outcome, counted, startedAt, endedAt, decision, fingerprint };
        }),
      );
      const { finishedAt, deadReason, resource, name } = only(await store.get([job.id]));
      assert.deepEqual(
        [job.finishedAt, job.deadReason, job.resource, job.name],
        [finishedAt, deadReason, resource, name],
      );
      assert.equal(job.part, null);
    }
    const byId = new Map(jobs.map((job) => [job.id, job]));
    assert.deepEqual([byId.get(once)?.runs.length, byId.get(thrice)?.runs.length], [1, 3]);
    assert.deepEqual([byId.get(dead)?.state, byId.get(dead)?.deadReason], ['dead', 'exhausted']);
  },

  async 'leaves out jobs that wait, run or were cancelled'({ store }) {
    const done = await runThrough(store, [complete]);
    await runThrough(store, [cancelNow]);
    await store.cancel([await enqueueOne(store)]);
    await startOne(store);
    await enqueueOne(store);
    assert.deepEqual(idsOf((await readAll(store)).jobs), [done]);
  },

  async 'leaves out jobs that ended before `since`'({ store, advance }) {
    await runThrough(store, [complete]);
    await runThrough(store, [die()]);
    await advance(MINUTE);
    const since = await timeOf(store);
    const later = [await runThrough(store, [complete]), await runThrough(store, [die()])];
    assert.deepEqual(idsOf((await readAll(store, { since })).jobs), later);
    const drawn = await store.ledger({ since, limit: 100, draw: 1 });
    assert.deepEqual(new Set(idsOf(drawn.jobs)), new Set(later));
    assert.equal(drawn.looked, 4);
    const before = await store.ledger({ since: 0, limit: 100, draw: 1, until: since - 1 });
    assert.deepEqual([before.jobs.length, before.looked], [2, 2]);
  },

  async 'comes in pages: completed jobs by their end, then dead ones, each job once'({ store, advance }) {
    const dead = await runThrough(store, [die()]);
    const completed = await completeSome(store, 5);
    await advance(MINUTE);
    completed.push(await runThrough(store, [complete]));
    for (const limit of [1, 2, 3, 100]) {
      const { jobs, pages } = await readAll(store, { limit });
      assert.deepEqual(idsOf(jobs).slice(-2), [completed.at(-1), dead]);
      assert.deepEqual(idsOf(jobs).sort(), [...completed, dead].sort());
      assert.ok(pages >= Math.ceil(6 / limit), 'a page is larger than it may be');
    }
  },

  async 'looks at so many jobs per page, also at those of other names'({ store }) {
    await completeSome(store, 4);
    const wanted = await runThrough(store, [complete], { name: 'report.make' });
    const { jobs, pages } = await readAll(store, { name: 'report.make', limit: 2 });
    assert.deepEqual(idsOf(jobs), [wanted]);
    assert.ok(pages >= 3);
    const drawn = await store.ledger({ since: 0, limit: 100, name: 'report.make', draw: 1 });
    assert.deepEqual(idsOf(drawn.jobs), [wanted]);
  },

  async 'gives one error of each fingerprint without its stack, and each policy once'({ store }) {
    await runThrough(store, [retryIn(0), complete]);
    await runThrough(store, [die()]);
    const own = { ...policy, maxAttempts: 9 };
    const job = await startOne(store, { policy: own });
    await settleOne(store, job, die(), { error: network });
    const jobs: LedgerJob[] = [];
    for (const draw of [0, 1]) {
      const page = await store.ledger({ since: 0, limit: 100, draw });
      assert.deepEqual(page.errors, {
        [disk.fingerprint as string]: { ...disk, stack: null },
        [network.fingerprint as string]: network,
      });
      assert.equal(page.policies.length, 2);
      jobs.push(...page.jobs.map((one) => ({ ...one, policy: page.policies[one.policy]?.maxAttempts as number })));
    }
    for (const one of jobs) assert.equal(one.policy, one.id === job.id ? 9 : 4);
  },

  async 'an error that an older version stored has no fingerprint'({ store }) {
    const job = await startOne(store);
    await settleOne(store, job, die(), { error: storedError('old') });
    const page = await readAll(store);
    assert.equal(only(only(page.jobs).runs).fingerprint, null);
  },

  async 'a draw gives ended jobs, each once, and all of them where there are few'({ store }) {
    const all = new Set([...(await completeSome(store, 60)), await runThrough(store, [retryIn(0), die()])]);
    for (const draw of [0, 1, 2]) {
      const { jobs, next } = await store.ledger({ since: 0, limit: 1_000, draw });
      assert.equal(next, null);
      assert.equal(jobs.length, all.size);
      assert.deepEqual(new Set(idsOf(jobs)), all);
      assert.ok(jobs.every(({ part }) => typeof part === 'number'));
      const few = await store.ledger({ since: 0, limit: 16, draw });
      assert.equal(new Set(idsOf(few.jobs)).size, few.jobs.length);
      assert.ok(few.jobs.every(({ id }) => all.has(id)));
    }
  },

  async 'a job that was redriven and ended again has the runs of both times'({ store }) {
    const id = await runThrough(store, [retryIn(0), die()]);
    await redrive(store, { ids: [id] });
    assert.deepEqual((await readAll(store)).jobs, []);
    const job = await claimOne(store, { queues: [{ ...redriveQuota }] });
    await settleOne(store, job, complete);
    const { runs, state } = only((await readAll(store)).jobs);
    assert.equal(state, 'completed');
    assert.deepEqual(
      runs.map(({ attempt }) => attempt),
      [1, 2, 1],
    );
  },

  async 'a position that is none gives an empty page'({ store }) {
    await runThrough(store, [complete]);
    for (const after of ['', 'completed', "'; DROP TABLE jobs; --", 'ready:0:0']) {
      const page = await store.ledger({ since: 0, limit: 10, after });
      assert.deepEqual([page.jobs, page.next], [[], null]);
    }
  },

  async 'an empty store has an empty ledger'({ store }) {
    assert.deepEqual((await readAll(store)).jobs, []);
    assert.deepEqual((await store.ledger({ since: 0, limit: 10, draw: 7 })).jobs, []);
  },
});

const redriveQuota = {
  queue: 'default',
  share: 0,
  retry: 0,
  redrive: 1,
  suspect: 0,
  maxRetriesInFlight: null,
};
