import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defineJob, type Job, type RunRecord } from '../../src/index.ts';
import { type TestQueue, testQueue } from '../../src/testing/index.ts';
import { type Books, checkLedgers, faultsIn, readBooks } from './ledger-check.ts';

const retry = { maxAttempts: 3, backoff: { kind: 'exponential', base: 100 }, jitter: 'decorrelated' } as const;
const good = defineJob<null>({ name: 'good', retry, run: () => {} });
const second = defineJob<null>({
  name: 'second',
  retry,
  run(_, { attempt }) {
    if (attempt === 1) throw new Error('not yet');
  },
});
const bad = defineJob<null>({
  name: 'bad',
  retry,
  run() {
    throw new Error('never');
  },
});
const naps = defineJob<null>({
  name: 'naps',
  retry,
  run(_, context) {
    if (context.run <= 2) context.snooze('1s');
  },
});

type Changes = { readonly job?: Partial<Job>; readonly rows?: (rows: RunRecord[]) => RunRecord[] };

describe('the ledger check', () => {
  let queue: TestQueue;
  let books: Books;
  const ids: Record<string, string> = {};
  const options = (): { acknowledged: string[]; redriven: string[] } => ({
    acknowledged: Object.values(ids),
    redriven: [ids.redriven as string],
  });

  /** The same books, but for one job. */
  const tampered = (which: string, { job = {}, rows = (same) => same }: Changes): Books => {
    const id = ids[which] as string;
    return {
      ...books,
      jobs: books.jobs.map((one) => (one.id === id ? { ...one, ...job } : one)),
      ledgers: new Map(books.ledgers).set(id, rows([...(books.ledgers.get(id) as RunRecord[])])),
    };
  };
  const changed = (index: number, change: Partial<RunRecord>) => (rows: RunRecord[]) =>
    rows.map((row, at) => (at === index ? { ...row, ...change } : row));

  beforeAll(async () => {
    queue = await testQueue({ jobs: [good, second, bad, naps], seed: 1 });
    for (const job of [good, second, bad, naps]) ids[job.name] = (await queue.mulligan.enqueue(job, null)).id;
    ids.redriven = (await queue.mulligan.enqueue(bad, null)).id;
    await queue.drain();
    await queue.mulligan.dead.redrive({ ids: [ids.redriven] });
    await queue.drain();
    books = await readBooks(queue.mulligan);
  });
  afterAll(() => queue[Symbol.asyncDispose]());

  it('finds nothing wrong in the books of a queue that works', async () => {
    expect(books.ledgers.get(ids.redriven as string)).toHaveLength(6);
    await expect(checkLedgers(queue.mulligan, options())).resolves.toEqual(books);
  });

  it('throws with what is wrong', async () => {
    const check = checkLedgers(queue.mulligan, { ...options(), acknowledged: ['never-stored'] });
    await expect(check).rejects.toThrow('job never-stored was acknowledged, and is lost');
  });

  const cases: readonly [fault: string, which: string, changes: Changes][] = [
    ['it has not ended: ready', 'good', { job: { state: 'ready' } }],
    ['still held by', 'good', { job: { worker: 'somebody' } }],
    ['completed by no run', 'good', { job: { runs: 0, attempts: 0 }, rows: () => [] }],
    ['started 2 times, its ledger has 1', 'good', { job: { runs: 2 } }],
    ['expected run 2 on its ledger, found run 3', 'naps', { rows: (rows) => rows.toSpliced(1, 1) }],
    ['completed more than once', 'good', { rows: ([row]) => [row, { ...row, run: 2 }] as RunRecord[] }],
    ['ran again after run 1 ended it', 'good', { rows: ([row]) => [row, { ...row, run: 2 }] as RunRecord[] }],
    ['says it was attempt 1, after 1 counted', 'second', { rows: changed(1, { attempt: 1 }) }],
    ['failed, and was not counted', 'second', { rows: changed(0, { counted: false }) }],
    ['snoozed, and was counted', 'naps', { rows: changed(0, { counted: true }) }],
    ['1 attempts, and 2 counted', 'second', { job: { attempts: 1 } }],
    ['0 crashes, and 1 crashed', 'second', { rows: changed(0, { outcome: 'crashed' }) }],
    ['4 attempts of 3', 'bad', { job: { attempts: 4 } }],
    ['dead of poison for no reason', 'bad', { job: { deadReason: 'poison' } }],
    ['dead of poison, and its last run decided dead', 'bad', { job: { deadReason: 'poison' } }],
    ['completed, and dead of exhausted', 'good', { job: { deadReason: 'exhausted' } }],
    [
      'ended 5 ms before it started',
      'good',
      { rows: ([row]) => [{ ...row, endedAt: (row?.startedAt ?? 0) - 5 }] as RunRecord[] },
    ],
    [
      'before it was due',
      'naps',
      { rows: ([one, two, three]) => [one, { ...two, startedAt: one?.startedAt }, three] as RunRecord[] },
    ],
    ['before run 1 ended', 'naps', { rows: ([one, ...rest]) => [{ ...one, endedAt: 9e12 }, ...rest] as RunRecord[] }],
    [
      'and the next one fell due',
      'naps',
      { rows: ([one, ...rest]) => [{ ...one, nextDueAt: one?.endedAt }, ...rest] as RunRecord[] },
    ],
    [
      'chose to wait 99 ms, and its policy says 100 to 300',
      'second',
      {
        rows: changed(0, { decision: { kind: 'retry', why: 'backoff', delayMs: 99, lane: 'retry', rule: 'default' } }),
      },
    ],
  ];
  it.each(cases)('finds: %s', (fault, which, changes) => {
    expect(faultsIn(tampered(which, changes), options()).join('\n')).toContain(fault);
  });

  it('finds that a buried job ran again although nobody brought it back', () => {
    expect(faultsIn(books, { acknowledged: [] })).toEqual([expect.stringContaining('ran again after run 3 buried it')]);
  });

  it('finds totals that are not what the ledgers add up to', () => {
    const { stats } = books;
    const wrong = { ...stats, totals: { ...stats.totals, runs: { ...stats.totals.runs, failed: 1 } } };
    expect(faultsIn({ ...books, stats: wrong }, options())).toEqual(['stats: failed runs 1, found 10']);
  });

  it('compares no times across steps of a clock, but still those of one run', () => {
    const overlapping = tampered('naps', {
      rows: ([one, ...rest]) => [{ ...one, endedAt: 9e12 }, ...rest] as RunRecord[],
    });
    expect(faultsIn(overlapping, { ...options(), clocks: 'stepping' })).toEqual([]);
  });
});
