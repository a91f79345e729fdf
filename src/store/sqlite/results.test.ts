import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type AnyJobDefinition,
  defineJob,
  JobCancelledError,
  JobDeadError,
  Mulligan,
  Unrecoverable,
} from '../../index.ts';

/* Each queue here has connections of its own, as in another process. */
class SharedFile implements AsyncDisposable {
  readonly #folder: string = mkdtempSync(join(tmpdir(), 'mulligan-'));
  readonly #open: Mulligan[] = [];

  async open(job: AnyJobDefinition): Promise<Mulligan> {
    const mulligan = await Mulligan.open(`sqlite:${join(this.#folder, 'jobs.db')}`, { jobs: [job], log: () => {} });
    this.#open.push(mulligan);
    return mulligan;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#open.map((mulligan) => mulligan.close({ grace: 0 })));
    rmSync(this.#folder, { recursive: true });
  }
}

const half = defineJob({
  name: 'half',
  run(n: number) {
    if (n < 0) throw new Unrecoverable('negative');
    return { half: n / 2 };
  },
});

describe('results across processes on one file', () => {
  it('reach a process that waits, however the job ends', async () => {
    await using file = new SharedFile();
    const [producer, consumer] = [await file.open(half), await file.open(half)];
    const enqueued = await producer.enqueueMany(half, [{ input: 8 }, { input: 10 }]);
    const results = enqueued.map((one) => producer.result(one, { timeout: '30s' }));
    consumer.work({ poll: '50ms' });
    expect(await Promise.all(results)).toEqual([{ half: 4 }, { half: 5 }]);
    const dead = await producer.result(await producer.enqueue(half, -1)).catch((error: unknown) => error);
    expect(dead).toBeInstanceOf(JobDeadError);
    const cancelled = await producer.enqueue(half, 1, { delay: '1h' });
    const waiting = producer.result(cancelled).catch((error: unknown) => error);
    await consumer.jobs.cancel(cancelled.id);
    expect(await waiting).toBeInstanceOf(JobCancelledError);
  });

  it('let a cancel reach a running handler of another process before its next heartbeat', async () => {
    const started = Promise.withResolvers<void>();
    const endless = defineJob({
      name: 'endless',
      run: (_: null, { signal }) =>
        new Promise<void>((_resolve, reject) => {
          started.resolve();
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    });
    await using file = new SharedFile();
    const [operator, consumer] = [await file.open(endless), await file.open(endless)];
    consumer.work({ lease: '10m', poll: '50ms' });
    const enqueued = await operator.enqueue(endless, null);
    await started.promise;
    const waiting = operator.result(enqueued).catch((error: unknown) => error);
    expect(await operator.jobs.cancel(enqueued.id)).toBe('cancelling');
    expect(await waiting).toBeInstanceOf(JobCancelledError);
  });
});
