import { describe, expect, it } from 'vitest';
import { defineJob } from './definition.ts';
import { ConfigError } from './errors.ts';
import { testQueue } from './testing/queue.ts';

describe('throttle', () => {
  it('runs one job of a key per window, with the first input', async () => {
    const ran: number[] = [];
    const warn = defineJob({ name: 'warn', run: (n: number) => void ran.push(n) });
    await using queue = await testQueue({ jobs: [warn] });
    const ids: string[] = [];
    for (let n = 1; n <= 6; n++) {
      ids.push((await queue.mulligan.enqueue(warn, n, { key: 'disk', throttle: '5s' })).id);
      await queue.clock.advance(2_000);
    }
    await queue.drain();
    expect(ran).toEqual([1, 4]);
    expect(ids).toEqual([ids[0], ids[0], ids[0], ids[3], ids[3], ids[3]]);
  });

  it('may be shared by jobs with keys of their own, and a job may choose another life of its key', async () => {
    const job = defineJob({ name: 'job', run() {} });
    await using queue = await testQueue({ jobs: [job], work: { queues: ['none'] } });
    const stored = async (...answers: { existed: boolean }[]) => answers.map(({ existed }) => existed);
    const jobs = [
      { input: 1, key: 'a' },
      { input: 2, key: 'b', debounce: '1s' },
      { input: 3, key: 'c', keyUntil: 'pruned' },
      { input: 4, key: 'a' },
    ] as const;
    expect(await stored(...(await queue.mulligan.enqueueMany(job, jobs, { throttle: '1m' })))).toEqual([
      false,
      false,
      false,
      true,
    ]);
    const own = [{ input: 5, key: 'd', throttle: '1m' }] as const;
    expect(await stored(...(await queue.mulligan.enqueueMany(job, own, { keyUntil: 'started' })))).toEqual([false]);
    await queue.clock.advance(61_000);
    const again = ['a', 'b', 'c', 'd'].map((key) => ({ input: 6, key }));
    expect(await stored(...(await queue.mulligan.enqueueMany(job, again)))).toEqual([false, true, true, false]);
  });

  it.each<[string, object, string | RegExp]>([
    ['no key', { throttle: '5s' }, 'enqueue: expected a key with throttle, got none'],
    ['a debounce beside it', { key: 'k', throttle: '5s', debounce: '1s' }, 'expected throttle or debounce, got both'],
    ['another life of the key', { key: 'k', throttle: '5s', keyUntil: 'pruned' }, 'expected throttle without keyUntil'],
    ['no time', { key: 'k', throttle: 0 }, 'enqueue: throttle: expected a duration above 0'],
    [
      'a long time',
      { key: 'k', throttle: '100000d' },
      /throttle: expected a duration of at most 365d, got "100000d"\.$/,
    ],
    ['what is no time', { key: 'k', throttle: 'often' }, 'enqueue: throttle: expected'],
    ['keyUntil window', { key: 'k', keyUntil: 'window' }, 'enqueue: keyUntil: expected'],
  ])('refuses %s', async (_, options, message) => {
    const job = defineJob({ name: 'job', run() {} });
    await using queue = await testQueue({ jobs: [job] });
    const error = await queue.mulligan.enqueue(job, 1, options).then(
      () => null,
      (reason: Error) => reason,
    );
    expect(error).toBeInstanceOf(ConfigError);
    expect(error?.message).toMatch(message);
  });
});
