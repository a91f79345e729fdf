import assert from 'node:assert/strict';
import type { LogLine } from '../../run-log.ts';
import type { Settlement, Store } from '../store.ts';
import {
  claimOne,
  complete,
  die,
  discard,
  enqueueOne,
  giveBack,
  MINUTE,
  newJob,
  pruneWith,
  redrive,
  retryIn,
  settlement,
  settleOne,
  startOne,
} from './builders.ts';
import { cases, type StoreCase } from './suite.ts';

const line = (message: string, more: Partial<LogLine> = {}): LogLine => ({ level: 'info', at: 7, message, ...more });

const logOf = (...lines: readonly LogLine[]): string => JSON.stringify({ dropped: 0, lines });

async function messagesOf(store: Store, id: string, limit = 10): Promise<[run: number, ...messages: string[]][]> {
  return (await store.logs(id, limit)).map(({ run, lines }) => [run, ...lines.map(({ message }) => message)]);
}

export const logCases: readonly StoreCase[] = cases('logs', {
  'the log of a run arrives with every outcome': async ({ store }) => {
    const decisions = [complete, retryIn(60_000), die(), giveBack('snooze', 60_000), giveBack('release', 60_000)];
    for (const decision of decisions) {
      const job = await startOne(store);
      await settleOne(store, job, decision, { log: logOf(line(decision.kind)) });
      assert.deepEqual(await messagesOf(store, job.id), [[1, decision.kind]]);
    }
  },

  'a log comes back as it was sent: levels, times, texts, fields and how many lines are missing': async ({ store }) => {
    const lines = [
      line('it\'s "quoted" \\ and \n broken', { level: 'warn', fields: { n: 1, deep: [{ a: null }] } }),
      line('\u0000 \ud800 \u{1f3cc}', { level: 'error', at: 1_800_000_000_000 }),
    ];
    const job = await startOne(store);
    await settleOne(store, job, complete, { log: JSON.stringify({ dropped: 3, lines }) });
    assert.deepEqual(await store.logs(job.id, 10), [{ run: 1, lines, dropped: 3 }]);
  },

  'a run that logged nothing, and a job that does not exist, have no log': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, complete);
    assert.deepEqual(await store.logs(job.id, 10), []);
    assert.deepEqual(await store.logs('unknown', 10), []);
  },

  'logs come newest run first, and no more of them than asked for': async ({ store }) => {
    const id = await enqueueOne(store);
    for (const message of ['first', 'second', 'third']) {
      await settleOne(store, await claimOne(store), retryIn(0), { log: logOf(line(message)) });
    }
    assert.deepEqual(await messagesOf(store, id), [
      [3, 'third'],
      [2, 'second'],
      [1, 'first'],
    ]);
    assert.deepEqual(await messagesOf(store, id, 2), [
      [3, 'third'],
      [2, 'second'],
    ]);
  },

  'a batch keeps each log with its own job': async ({ store }) => {
    const jobs = [await startOne(store), await startOne(store), await startOne(store), await startOne(store)];
    const settlements = jobs.map((job, index): Settlement => {
      const more = index % 2 === 0 ? {} : { log: logOf(line(`job ${index}`)) };
      return settlement(job, index < 2 ? complete : retryIn(60_000), more);
    });
    assert.deepEqual(await store.settle(settlements), ['settled', 'settled', 'settled', 'settled']);
    const logs = await Promise.all(jobs.map(({ id }) => messagesOf(store, id)));
    assert.deepEqual(logs, [[], [[1, 'job 1']], [], [[1, 'job 3']]]);
  },

  'a repeated settlement keeps the first log': async ({ store }) => {
    for (const decision of [complete, retryIn(60_000)]) {
      const job = await startOne(store);
      await settleOne(store, job, decision, { log: logOf(line('first')) });
      await settleOne(store, job, decision, { log: logOf(line('second')) });
      assert.deepEqual(await messagesOf(store, job.id), [[1, 'first']]);
    }
  },

  'a stale settlement stores no log, and the others of its batch do': async ({ store }) => {
    const [late, job] = [await startOne(store), await startOne(store)];
    await settleOne(store, late, retryIn(60_000));
    const log = logOf(line('kept'));
    const answers = await store.settle([settlement(late, complete, { log }), settlement(job, complete, { log })]);
    assert.deepEqual(answers, ['stale', 'settled']);
    assert.deepEqual(await messagesOf(store, late.id), []);
    assert.deepEqual(await messagesOf(store, job.id), [[1, 'kept']]);
  },

  'a run that was overtaken by a cancel keeps its log': async ({ store }) => {
    const job = await startOne(store);
    await store.cancel([job.id]);
    const log = logOf(line('told to stop'));
    assert.deepEqual(await store.settle([settlement(job, retryIn(60_000), { log })]), ['cancelled']);
    assert.deepEqual(await messagesOf(store, job.id), [[1, 'told to stop']]);
  },

  'a redriven job keeps the logs of its earlier runs': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, die(), { log: logOf(line('died')) });
    await redrive(store, { ids: [job.id] });
    await settleOne(store, await claimOne(store), complete, { log: logOf(line('worked')) });
    assert.deepEqual(await messagesOf(store, job.id), [
      [2, 'worked'],
      [1, 'died'],
    ]);
  },

  'a discarded job is gone with its logs': async ({ store }) => {
    const job = await startOne(store);
    await settleOne(store, job, die(), { log: logOf(line('died')) });
    await discard(store, { ids: [job.id] });
    await store.enqueue([newJob({ id: job.id })]);
    assert.deepEqual(await store.logs(job.id, 10), []);
  },

  'a pruned job is gone with its logs': async ({ store, advance }) => {
    const job = await startOne(store);
    await settleOne(store, job, complete, { log: logOf(line('worked')) });
    await advance(MINUTE);
    await pruneWith(store, { completedMs: 0, deadMs: 0, cancelledMs: 0 }, 10);
    await store.enqueue([newJob({ id: job.id })]);
    assert.deepEqual(await store.logs(job.id, 10), []);
  },
});
