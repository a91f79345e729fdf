import { describe, expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import type { LogEntry } from '../observe/log.ts';
import { testQueue } from '../testing/queue.ts';

const once = { maxAttempts: 1 } as const;

function logged() {
  const entries: LogEntry[] = [];
  const log = (entry: LogEntry): void => void entries.push(entry);
  const of = (level: string): LogEntry[] => entries.filter((entry) => entry.level === level);
  return { log, of };
}

describe('the log is told', () => {
  it('at warn of the first job that dies, and of how many died like it', async () => {
    const job = defineJob<number>({
      name: 'email.send',
      retry: once,
      run(n) {
        throw n % 2 === 0 ? new TypeError(`no address ${n}`) : Object.assign(new Error(`${n}`), { code: 'EBADMAIL' });
      },
    });
    const { log, of } = logged();
    const queue = await testQueue({ jobs: [job], log });
    await queue.mulligan.enqueueMany(
      job,
      Array.from({ length: 2_000 }, (_, n) => n).map((input) => ({ input })),
    );
    await queue.drain();
    await queue[Symbol.asyncDispose]();
    expect(of('warn').map(({ message, error, more }) => ({ message, error, more }))).toEqual([
      { message: 'a job is dead (exhausted)', error: 'TypeError: no address 0' },
      { message: 'a job is dead (exhausted)', error: 'Error: 1' },
      {
        message: 'a job is dead (exhausted): and 999 more like it within 1m',
        error: 'TypeError: no address 0',
        more: 999,
      },
      { message: 'a job is dead (exhausted): and 999 more like it within 1m', error: 'Error: 1', more: 999 },
    ]);
    expect(of('warn')[0]).toMatchObject({
      event: 'dead',
      name: 'email.send',
      queue: 'default',
      run: 1,
      attempt: 1,
      outcome: 'failed',
    });
    expect(queue.clock.pending).toBe(0);
  });

  it('at debug of a failure that will be tried again', async () => {
    const job = defineJob<null>({
      name: 'flaky',
      retry: { maxAttempts: 3 },
      run(_, { attempt }) {
        if (attempt < 3) throw new Error('not yet');
      },
    });
    const { log, of } = logged();
    await using queue = await testQueue({ jobs: [job], log });
    await queue.mulligan.enqueue(job, null);
    await queue.drain();
    expect(of('debug')).toMatchObject([
      { message: 'a run failed; it will be tried again', event: 'retrying', name: 'flaky', error: 'Error: not yet' },
    ]);
    expect(of('warn')).toEqual([]);
  });

  it('at warn of a name without a handler, once a minute and not for each job and claim', async () => {
    const { log, of } = logged();
    const queue = await testQueue({ jobs: [], log });
    await queue.mulligan.enqueueMany(
      'unheard.of',
      Array(50)
        .fill(null)
        .map((input) => ({ input })),
    );
    await queue.clock.advance(10_000);
    expect(of('warn')).toMatchObject([
      {
        message: 'no handler for "unheard.of" here; its jobs wait for a worker that has one',
        event: 'no-handler',
        name: 'unheard.of',
        queue: 'default',
      },
    ]);
    await queue[Symbol.asyncDispose]();
  });
});
