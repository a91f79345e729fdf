import { expect } from 'vitest';
import {
  claimRequest,
  complete,
  newJobs,
  pruneWith,
  quota,
  retryIn,
  settlement,
} from '../../src/store/conformance/builders.ts';
import type { StoreHarness } from '../../src/store/conformance/index.ts';
import type { ClaimedJob } from '../../src/store/store.ts';

const away = { name: 'Error', message: 'away', code: null, status: null, stack: 'at x' };
const gone = { ...away, message: 'gone' };

/** What the tables of a store say: each error with the number of runs that threw it. */
export interface StoredErrors {
  read(): Promise<readonly { readonly uses: number; readonly error: string }[]>;
  expectSound(): Promise<void>;
}

/** Runs that fail alike share one stored error, which goes with the last of them. */
export async function expectErrorsStoredOnce({ store, advance }: StoreHarness, stored: StoredErrors): Promise<void> {
  const prune = async (): Promise<number> => {
    await advance(1_000);
    return (await pruneWith(store, { completedMs: 1, deadMs: null, cancelledMs: null }, 10)).jobs;
  };
  await store.enqueue(newJobs(3));
  const request = claimRequest({ limit: 3, queues: [quota({ share: 3, retry: 3 })] });
  const first = await store.claim(request);
  const failed = first.jobs.map((job, index) => ({
    ...settlement(job, retryIn(0)),
    outcome: 'failed' as const,
    error: index === 2 ? gone : away,
  }));
  await store.settle(failed);
  const twice = [
    { uses: 2, error: JSON.stringify(away) },
    { uses: 1, error: JSON.stringify(gone) },
  ];
  expect(await stored.read()).toEqual(twice);

  const second = await store.claim(request);
  expect(second.jobs.map(({ lastError }) => lastError?.message).sort()).toEqual(['away', 'away', 'gone']);
  await stored.expectSound();

  // Nobody believes it any more, so nothing of it is kept.
  await store.settle(
    failed.map((late) => ({ ...late, outcome: 'cancelled' as const, error: { ...away, message: 'late' } })),
  );
  expect(await stored.read()).toEqual(twice);

  const [one, ...rest] = second.jobs as [ClaimedJob, ...ClaimedJob[]];
  await store.settle([settlement(one, complete)]);
  expect(await prune()).toBe(1);
  expect((await stored.read()).length).toBeGreaterThan(0);
  await stored.expectSound();
  await store.settle(rest.map((job) => settlement(job, complete)));
  expect(await prune()).toBe(2);
  expect(await stored.read()).toEqual([]);
}
