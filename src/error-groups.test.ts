import { describe, expect, it } from 'vitest';
import { defineJob } from './definition.ts';
import { Mulligan } from './mulligan.ts';
import { Unrecoverable } from './retry/control-errors.ts';
import { MemoryStore } from './store/memory/store.ts';
import { testQueue } from './testing/queue.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const twice = { maxAttempts: 2, backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' } as const;

const send = defineJob<number>({
  name: 'send',
  retry: twice,
  resource: false,
  run(input, { attempt }) {
    if (input < 10 && attempt === 2) return;
    throw new Error(`mailbox ${input} is full`);
  },
});
const parse = defineJob<number>({
  name: 'parse',
  queue: 'files',
  run: (input) => {
    throw new Unrecoverable(`file ${input} is broken`);
  },
});
const slow = defineJob<number>({
  name: 'slow',
  timeout: '1s',
  retry: { maxAttempts: 1 },
  resource: false,
  run: (_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
});
describe('mulligan.errors', () => {
  it('history tells when jobs failed with which kind of error, and when they died of it', async () => {
    await using queue = await testQueue({ jobs: [send, parse], work: { queues: ['default', 'files'] } });
    const { mulligan } = queue;
    await mulligan.enqueueMany(send, [{ input: 1 }, { input: 14 }]);
    await mulligan.enqueue(parse, 1);
    await queue.drain();
    const { series, from, to, stepMs } = await mulligan.errors.history();
    const sum = (counts: readonly number[] = []): number => counts.reduce((total, one) => total + one, 0);
    expect(series.map((one) => [one.name, one.queue, sum(one.failures), sum(one.dead)])).toEqual([
      ['send', 'default', 3, 1],
      ['parse', 'files', 1, 1],
    ]);
    expect(series[0]?.failures).toHaveLength((to - from) / stepMs);
    const [full] = await mulligan.errors.list({ name: 'send' });
    expect(series[0]?.fingerprint).toBe(full?.fingerprint);
    const parsed = await mulligan.errors.history({ queue: 'files', from: '1h' });
    expect(parsed.series.map(({ name }) => name)).toEqual(['parse']);
  });

  it('groups failing and dead jobs by what they failed with, whatever ids are in the messages', async () => {
    await using queue = await testQueue({ jobs: [send, parse], work: { queues: ['default', 'files'] } });
    const { mulligan } = queue;
    await mulligan.enqueueMany(send, [
      { input: 1 },
      { input: 2 },
      { input: 3 },
      { input: 14 },
      { input: 15 },
      { input: 16 },
      { input: 17 },
    ]);
    await mulligan.enqueueMany(parse, [{ input: 1 }, { input: 2 }]);
    await queue.drain();
    const [full, broken, ...others] = await mulligan.errors.list();
    expect(others).toEqual([]);
    expect(full).toMatchObject({ dead: 4, failing: 0, failures: 11, jobs: 7, recovered: 3, recoveredShare: 3 / 7 });
    expect(full?.recoveredAt).toEqual([{ attempt: 2, jobs: 3 }]);
    expect(full?.names).toMatchObject([{ name: 'send', queue: 'default' }]);
    expect(broken).toMatchObject({ dead: 2, names: [{ name: 'parse', queue: 'files' }] });
    expect(full?.sample?.error).toMatchObject({ message: 'mailbox 1 is full', fingerprint: full?.fingerprint });
    const [job] = await mulligan.dead.list({ name: 'send', limit: 1 });
    expect(job?.lastError?.fingerprint).toBe(full?.fingerprint);
    const ledger = await mulligan.jobs.runs(job?.id as string);
    expect(ledger.map(({ error }) => error?.fingerprint)).toEqual([full?.fingerprint, full?.fingerprint]);
  });

  it('lists what its options ask for', async () => {
    await using queue = await testQueue({ jobs: [send, parse], work: { queues: ['default', 'files'] } });
    const { mulligan, clock } = queue;
    await mulligan.enqueueMany(parse, [{ input: 1 }, { input: 2 }]);
    await queue.drain();
    await clock.advance(3_600_000);
    await mulligan.enqueue(send, 20);
    await clock.advance(100);
    const namesOf = async (options: object): Promise<string[]> =>
      (await mulligan.errors.list(options)).map(({ names }) => names[0]?.name as string);
    expect(await namesOf({})).toEqual(['parse', 'send']);
    expect(await namesOf({ limit: 1 })).toEqual(['parse']);
    expect(await namesOf({ name: 'send' })).toEqual(['send']);
    expect(await namesOf({ queue: 'files' })).toEqual(['parse']);
    expect(await namesOf({ state: 'failing' })).toEqual(['send']);
    expect(await namesOf({ state: 'dead' })).toEqual(['parse']);
    expect(await namesOf({ since: '1m' })).toEqual(['send']);
    expect(await namesOf({ since: new Date(clock.now() - 7_200_000) })).toEqual(['parse', 'send']);
  });

  it.each([
    [{ state: 'retrying' }, /errors\.list: state/],
    [{ since: 'yesterday' }, /errors\.list: since: expected/],
    [{ since: new Date('x') }, /errors\.list: since: expected a Date, or how long ago/],
    [{ since: 5 }, /errors\.list: since: expected a Date, or how long ago/],
    [{ limit: 0 }, /errors\.list: limit/],
    [{ nmae: 'x' }, /Did you mean name\?|did you mean/i],
  ])('refuses %j', async (options, message) => {
    await using mulligan = await Mulligan.open('memory:');
    await expect(mulligan.errors.list(options as never)).rejects.toThrow(message);
  });

  it('shows a group by its fingerprint or the start of it, and says when several fit', async () => {
    await using queue = await testQueue({ jobs: [send, parse], work: { queues: ['default', 'files'] } });
    const { mulligan } = queue;
    await mulligan.enqueue(send, 20);
    await mulligan.enqueue(parse, 1);
    await queue.drain();
    const groups = await mulligan.errors.list();
    for (const group of groups) {
      expect(await mulligan.errors.show(group.fingerprint)).toEqual(group);
      expect(await mulligan.errors.show(group.fingerprint.slice(0, 10))).toEqual(group);
    }
    expect(await mulligan.errors.show('zz')).toBeNull();
    await expect(mulligan.errors.show('e1')).rejects.toThrow(
      /expected the fingerprint of one error group, got e1, .*Give more/,
    );
    await expect(mulligan.errors.show('')).rejects.toThrow(/errors\.show/);
  });

  it('has a group for timeouts', async () => {
    await using queue = await testQueue({ jobs: [slow] });
    await queue.mulligan.enqueueMany(slow, [{ input: 1 }, { input: 2 }]);
    await queue.drain();
    expect(await queue.mulligan.errors.list()).toMatchObject([
      { dead: 2, sample: { error: { name: 'TimeoutError' } } },
    ]);
  });

  it('has a group for crashed jobs, and one for jobs without a handler', async () => {
    const clock = new VirtualClock();
    const store = new MemoryStore({ clock });
    await using mulligan = await Mulligan.open(store, { jobs: [send], clock, log: () => {} });
    await mulligan.enqueue('unknown.one', 1);
    await mulligan.enqueue('unknown.two', 1);
    await mulligan.enqueue(send, 1);
    const quota = { queue: 'default', share: 0, retry: 0, redrive: 0, suspect: 0, maxRetriesInFlight: null };
    const { jobs } = await store.claim({ worker: 'gone', leaseMs: 1_000, limit: 10, queues: [quota] });
    expect(jobs).toHaveLength(3);
    await clock.advance(60_000);
    const worker = mulligan.work({ unknownJobTimeout: '1h' });
    await clock.advance(60_000);
    const crashes = (await mulligan.errors.list()).find(({ sample }) => sample?.error.code === 'CRASHED');
    expect(crashes).toMatchObject({ jobs: 3, failures: 3, recovered: 1, failing: 2 });
    await clock.advance(3 * 3_600_000);
    const [unknown] = await mulligan.errors.list({ state: 'dead' });
    expect(unknown).toMatchObject({ dead: 2, sample: { error: { code: 'NO_HANDLER' } } });
    expect(unknown?.names.map(({ name }) => name)).toEqual(['unknown.one', 'unknown.two']);
    const stopped = worker.stop();
    await clock.advance(10_000);
    await stopped;
  });
});
