import { describe, expect, test } from 'vitest';
import { defineJob, type JobOptions, Mulligan, Snooze } from '../../src/index.ts';
import { openVirtual, storeKinds } from './stores.ts';

/*
 * What a soft gate makes of the cap of attempts, with real workers on every store, in virtual time.
 */

interface Scene extends AsyncDisposable {
  readonly mulligan: Mulligan;
  /** When its handler was called, in ms since the job was enqueued. */
  readonly starts: readonly number[];
  readonly job: () => ReturnType<Mulligan['jobs']['get']>;
  readonly advance: (ms: number) => Promise<void>;
}

type LoneOptions = Pick<JobOptions<null>, 'retry' | 'backoff' | 'resource'>;

/** One job, alone, whose handler throws what `failure` makes. */
async function lone(kind: string, options: LoneOptions, failure: () => unknown): Promise<Scene> {
  const virtual = await openVirtual(kind);
  const { clock } = virtual;
  const starts: number[] = [];
  let enqueuedAt = 0;
  const job = defineJob<null>({
    name: 'call',
    ...options,
    async run() {
      starts.push(clock.now() - enqueuedAt);
      await new Promise<void>((resolve) => clock.after(5, resolve));
      throw failure();
    },
  });
  const mulligan = await Mulligan.open(virtual.store, { clock, jobs: [job], log: () => {} });
  mulligan.work({ concurrency: 5, lease: '10m' });
  await virtual.advance(1_000);
  enqueuedAt = clock.now();
  const { id } = await mulligan.enqueue(job, null);
  return {
    mulligan,
    starts,
    job: () => mulligan.jobs.get(id),
    advance: virtual.advance,
    async [Symbol.asyncDispose]() {
      let isClosed = false;
      const closing = mulligan.close({ grace: 0 }).then(() => {
        isClosed = true;
      });
      while (!isClosed) await clock.advance(1_000);
      await closing;
      await virtual[Symbol.asyncDispose]();
    },
  };
}

const unavailable = () => Object.assign(new Error('Service Unavailable'), { status: 503 });
const capped = { maxAttempts: 4, jitter: 'none' } as const;
const at20ms = { backoff: { kind: 'fixed', base: 20 } } as const;
const backoffs: Readonly<Record<string, LoneOptions>> = {
  'a fixed backoff of 20 ms': { retry: { ...capped, ...at20ms } },
  'no backoff': { retry: { ...capped, backoff: { kind: 'fixed', base: 0 } } },
  'a backoff function that answers 0': { retry: capped, backoff: () => 0 },
};

describe.each(storeKinds)('on %s', (kind) => {
  test.each(Object.entries(backoffs))(
    'a lone job on 503 with %s runs at most 12 times in its first 60 s',
    async (_, options) => {
      await using scene = await lone(kind, options, unavailable);
      await scene.advance(60_000);
      expect(scene.starts.length).toBeLessThanOrEqual(12);
      expect(await scene.job()).toMatchObject({ state: 'retrying', runs: scene.starts.length });
    },
  );

  test('with `resource: false` the cap of attempts is exact', async () => {
    await using scene = await lone(kind, { retry: { ...capped, ...at20ms }, resource: false }, unavailable);
    await scene.advance(60_000);
    expect(scene.starts.length).toBe(4);
    expect(await scene.job()).toMatchObject({ state: 'dead', deadReason: 'exhausted', runs: 4, attempts: 4 });
  });

  test('a job is dead after `maxRuns` runs, whatever gave them back', async () => {
    await using scene = await lone(kind, { retry: { ...capped, ...at20ms, maxRuns: 6 } }, unavailable);
    await scene.advance(60_000);
    expect(scene.starts.length).toBe(6);
    expect(await scene.job()).toMatchObject({ state: 'dead', deadReason: 'runs', runs: 6 });
    expect((await scene.mulligan.jobs.list({ reason: 'runs' })).length).toBe(1);
    expect((await scene.mulligan.stats()).totals.dead).toMatchObject({ runs: 1, exhausted: 0 });
  });

  test('a job that snoozes for no time waits a second from its tenth snooze in a row on', async () => {
    await using scene = await lone(kind, {}, () => new Snooze(0));
    await scene.advance(60_000);
    expect(scene.starts.length).toBeGreaterThan(50);
    expect(scene.starts.length).toBeLessThanOrEqual(10 + 60);
  });

  test('a job that snoozes for five seconds polls every five seconds, beyond `maxRuns`', async () => {
    await using scene = await lone(kind, { retry: { maxAttempts: 1, maxRuns: 3 } }, () => new Snooze('5s'));
    await scene.advance(100_000);
    expect(scene.starts.length).toBeGreaterThanOrEqual(19);
    expect((await scene.job())?.deadReason).toBeNull();
  });
});

test('a lone job that always gets a 503 dies an hour later, after some 70 calls', async () => {
  await using scene = await lone('memory', { retry: { ...capped, ...at20ms } }, unavailable);
  await scene.advance(58 * 60_000);
  expect((await scene.job())?.state).toBe('retrying');
  await scene.advance(7 * 60_000);
  expect(await scene.job()).toMatchObject({ state: 'dead', deadReason: 'exhausted' });
  expect(scene.starts.length).toBeGreaterThan(40);
  expect(scene.starts.length).toBeLessThanOrEqual(75);
});

test('a poller that has snoozed for hours outlives an outage that it alone meets', async () => {
  let calls = 0;
  const isDown = () => ++calls > 2_160 && calls <= 2_180;
  await using scene = await lone('memory', {}, () => (isDown() ? unavailable() : new Snooze('5s')));
  await scene.advance(4 * 3_600_000);
  expect(calls).toBeGreaterThan(2_200);
  expect(await scene.job()).toMatchObject({ deadReason: null });
});
