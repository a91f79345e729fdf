import { expect, inject, it } from 'vitest';
import { runSql } from '../../../test/support/postgres-schema.ts';
import { Two } from '../../../test/support/two-processes.ts';
import { outcomeKinds } from '../../retry/outcome.ts';
import {
  bury,
  claim,
  complete,
  discard,
  MINUTE,
  newJobs,
  pruneWith,
  retryIn,
  settlement,
  startOne,
} from '../conformance/builders.ts';
import type { Store } from '../store.ts';

const url = inject('postgresUrl');
const DAY = 24 * 60 * MINUTE;
/** What `Two.open` runs. */
const BEFORE = 4;

async function runsIn(store: Store): Promise<number> {
  const { now } = await store.history({ from: 0, to: DAY, stepMs: DAY });
  const to = (Math.floor(now / DAY) + 1) * DAY;
  const { points } = await store.history({ from: to - 30 * DAY, to, stepMs: DAY });
  return points.reduce((sum, { runs }) => sum + runs, 0);
}

async function rollUp(two: Two, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    while (!(await two.other.rollUp()).isDone);
    await two.advance(MINUTE);
  }
}

/** Beyond an hour no other transaction of the server is waited for: other tests may have some open. */
async function rollUpAll(two: Two): Promise<void> {
  await two.advance(60 * MINUTE);
  await rollUp(two, 3);
  await two.advance(61 * MINUTE);
  await rollUp(two, 2);
}

it.each([
  ['completes', complete, /complete/],
  ['is retried', retryIn(DAY), /\.settle/],
] as const)('a run that %s and commits late is counted, and once', async (_, decision, text) => {
  await using two = await Two.open(url);
  const late = await startOne(two.late);
  const open = await two.begin(text, (store) => store.settle([settlement(late, decision)]));
  const other = await startOne(two.other);
  await two.other.settle([settlement(other, complete)]);
  await rollUp(two, 5);
  open.commit();
  expect(await open.answer).toEqual(['settled']);
  await rollUpAll(two);
  expect(await runsIn(two.other)).toBe(BEFORE + 2);
});

it('a transaction that stays open stops the counting for an hour at most', async () => {
  await using two = await Two.open(url);
  const late = await startOne(two.late);
  const open = await two.begin(/complete/, (store) => store.settle([settlement(late, complete)]));
  await rollUp(two, 5);
  expect(await runsIn(two.other)).toBe(0);
  await rollUpAll(two);
  expect(await runsIn(two.other)).toBe(BEFORE);
  open.commit();
  await open.answer;
});

it('processes that add up at once, beside deletions, count each run once', async () => {
  await using two = await Two.open(url);
  const stores = [two.late, two.other];
  let isOver = false;
  const adding = stores.map(async (store) => {
    while (!isOver) await store.rollUp();
  });
  for (let round = 0; round < 10; round++) {
    await two.late.enqueue(newJobs(50));
    const { jobs } = await claim(two.late, { limit: 50 });
    await two.late.settle(jobs.map((job, index) => settlement(job, index % 5 === 0 ? retryIn(DAY) : complete)));
    const id = await bury(two.other);
    await two.advance(MINUTE);
    await Promise.all([
      discard(two.other, { ids: [id] }),
      pruneWith(two.late, { completedMs: 0, deadMs: null, cancelledMs: null }, 20),
    ]);
  }
  isOver = true;
  await Promise.all(adding);
  await rollUpAll(two);
  const { rows } = await two.other.stats();
  const ended = rows.flatMap(({ totals }) => outcomeKinds.map((outcome) => totals.runs[outcome]));
  expect(await runsIn(two.other)).toBe(ended.reduce((sum, runs) => sum + runs, 0));
  expect(await runsIn(two.other)).toBe(BEFORE + 510);
});

it('a deletion waits for a process that adds up, so that no run is counted by both', async () => {
  await using two = await Two.open(url);
  const id = await bury(two.other);
  await two.advance(MINUTE);
  await two.other.rollUp();
  await two.advance(61 * MINUTE);
  const open = await two.begin(/roll_up/, (store) => store.rollUp());
  await two.commitWhenBlocked(open, (store) => discard(store, { ids: [id] }));
  await open.answer;
  await rollUpAll(two);
  expect(await runsIn(two.other)).toBe(BEFORE + 1);
});

it('nothing is written while nothing ends', async () => {
  await using two = await Two.open(url);
  await rollUpAll(two);
  const written = async (): Promise<unknown> =>
    (await runSql(url, `SELECT xmin::text, ctid::text, counted_to FROM ${two.schema}.history_mark`))[0];
  const before = await written();
  await rollUp(two, 3);
  expect(await written()).toEqual(before);
});
