import { describe, expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import type { JobState } from '../job.ts';
import type { StatsRow } from '../store/store.ts';
import { emptyTotals, type MutableTotals } from '../store/totals.ts';
import { testQueue } from '../testing/queue.ts';
import { summarise } from './stats.ts';

const nobody = { scheduled: 0, ready: 0, running: 0, retrying: 0, completed: 0, dead: 0, cancelled: 0 };

function row(
  queue: string,
  name: string,
  states: Partial<Record<JobState, number>>,
  totals: Partial<MutableTotals>,
): StatsRow {
  return { queue, name, states: { ...nobody, ...states }, totals: { ...emptyTotals(), ...totals } };
}

describe('statistics', () => {
  it('of an empty store are all zero, and no rate is NaN', () => {
    expect(summarise({ now: 0, rows: [] })).toEqual({
      totalRetries: 0,
      successfulRetries: 0,
      retrySuccessRate: 0,
      states: nobody,
      totals: emptyTotals(),
      queues: {},
      names: {},
    });
  });

  it('add up over all, by queue and by name', () => {
    const { queues, names, ...all } = summarise({
      now: 0,
      rows: [
        row('mail', 'welcome', { completed: 3, ready: 1 }, { enqueued: 4, retries: 2, successfulRetries: 1 }),
        row('mail', 'invoice', { dead: 2 }, { enqueued: 2, retries: 6, dead: { ...emptyTotals().dead, exhausted: 2 } }),
        row('sms', 'welcome', { completed: 1 }, { enqueued: 1, runs: { ...emptyTotals().runs, completed: 1 } }),
      ],
    });
    expect(all).toMatchObject({
      totalRetries: 8,
      successfulRetries: 1,
      retrySuccessRate: 1 / 8,
      states: { ...nobody, completed: 4, ready: 1, dead: 2 },
      totals: { enqueued: 7, retries: 8, runs: { completed: 1 }, dead: { exhausted: 2 } },
    });
    expect(Object.keys(queues)).toEqual(['mail', 'sms']);
    expect(queues.mail).toMatchObject({ totalRetries: 8, states: { completed: 3, dead: 2, ready: 1 } });
    expect(Object.keys(names)).toEqual(['invoice', 'welcome']);
    expect(names.welcome).toMatchObject({ totalRetries: 2, retrySuccessRate: 0.5, states: { completed: 4 } });
  });

  it('hold a queue of any name as a plain key', () => {
    const rows = ['__proto__', 'constructor', 'toString'].map((name) => row(name, name, { ready: 1 }, { enqueued: 1 }));
    const { queues, names } = summarise({ now: 0, rows });
    for (const group of [queues, names]) {
      expect(Object.keys(group)).toEqual(['__proto__', 'constructor', 'toString']);
      expect(Object.getOwnPropertyDescriptor(group, '__proto__')?.value).toMatchObject({ states: { ready: 1 } });
      expect(Object.getPrototypeOf(group)).toBe(Object.prototype);
    }
  });

  it('are those of the queue a job was sent to, also while it is retried elsewhere', async () => {
    const job = defineJob<number>({
      name: 'job',
      queue: 'mail',
      retryQueue: 'mail.retry',
      retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' },
      run(failures, { attempt }) {
        if (attempt <= failures) throw new Error('no');
      },
    });
    await using queue = await testQueue({ jobs: [job], work: { queues: ['mail', 'mail.retry'] } });
    await queue.mulligan.enqueueMany(job, [{ input: 0 }, { input: 1 }, { input: 2 }, { input: 3 }]);
    await queue.clock.advance(0);
    expect((await queue.mulligan.stats()).queues).toMatchObject({ mail: { states: { completed: 1, retrying: 3 } } });
    await queue.drain();
    // Retries: 1 of the second job, 2 of the third, 2 of the fourth, which died.
    const { queues, ...all } = await queue.mulligan.stats();
    expect(Object.keys(queues)).toEqual(['mail']);
    expect(all).toMatchObject({
      totalRetries: 5,
      successfulRetries: 2,
      retrySuccessRate: 0.4,
      states: { completed: 3, dead: 1 },
      totals: { enqueued: 4, runs: { completed: 3, failed: 6 }, dead: { exhausted: 1 } },
    });
  });
});
