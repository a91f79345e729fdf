import { describe, expect, test } from 'vitest';
import { defineJob, type JobOptions, Mulligan } from '../../src/index.ts';
import { openVirtual, storeKinds } from './stores.ts';

/*
 * What a soft gate makes of the cap of attempts, with real workers on every store, in virtual time.
 */

interface Scene extends AsyncDisposable {
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
const backoffs: Readonly<Record<string, LoneOptions>> = {
  'a fixed backoff of 20 ms': { retry: { ...capped, backoff: { kind: 'fixed', base: 20 } } },
  'no backoff': { retry: { ...capped, backoff: { kind: 'fixed', base: 0 } } },
  'a backoff function that answers 0': { retry: capped, backoff: () => 0 },
};

describe.each(storeKinds)('on %s', (kind) => {
  test.each(Object.entries(backoffs))(
    'a lone job on 503 with %s runs at most 12 times in its first 60 s',
    async (_, options) => {
      await using scene = await lone(kind, options, unavailable);
      await scene.advance(60_000);
      console.info(kind, 'starts', scene.starts.length, scene.starts.slice(0, 20));
      expect(scene.starts.length).toBeLessThanOrEqual(12);
      expect((await scene.job())?.state).toBe('retrying');
    },
  );
});
