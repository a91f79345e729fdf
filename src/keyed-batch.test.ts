import { describe, expect, it } from 'vitest';
import { StoreBusyError, StoreUnavailableError } from './errors.ts';
import { contentionOf, KeyedBatch } from './keyed-batch.ts';
import { newJob } from './store/conformance/builders.ts';
import type { Enqueued, NewJob } from './store/store.ts';
import { VirtualClock } from './testing/virtual-clock.ts';

const keyed = (key: string, name = 'job'): NewJob => newJob({ name, key });
const accepted = (jobs: readonly NewJob[]): Enqueued[] => jobs.map(({ id }) => ({ id, existed: false }));

/** A store that says after `busyMs` that it is busy when it is sent a key that is held, and accepts all else at once. */
function contestable(busyMs = 0) {
  const clock = new VirtualClock();
  const held = new Set<string>();
  const sent: string[][] = [];
  const batch = new KeyedBatch(
    async (jobs) => {
      sent.push(jobs.map(({ name, key }) => (name === 'job' ? `${key}` : `${name} ${key}`)));
      if (!jobs.some(({ name, key }) => name === 'job' && held.has(key as string))) return accepted(jobs);
      if (busyMs > 0) await new Promise<void>((resolve) => clock.after(busyMs, resolve));
      throw new StoreBusyError('held');
    },
    { limit: 100 },
    clock,
  );
  const told: string[] = [];
  const ask = (key: string, name?: string): Promise<void> =>
    batch.add([keyed(key, name)]).then(
      () => void told.push(key),
      (error: { code: string }) => void told.push(`${key}: ${error.code}`),
    );
  return { clock, held, sent, told, ask };
}

describe('what a job contends for', () => {
  it('is its key, and the keys of limits behind which it does not wait; nothing when it has neither', () => {
    const limits = [{ limit: 'shop', key: 'a' }];
    const asks = (key: string) => newJob({ limits, onLimit: [{ limit: 'shop', key, action: 'cancel-newest' }] });
    expect([newJob(), newJob({ limits })].map(contentionOf)).toEqual([null, null]);
    const others = [keyed('a'), keyed('b'), keyed('a', 'other'), asks('a'), asks('b'), { ...asks('a'), key: 'a' }];
    expect(new Set(others.map(contentionOf)).size).toBe(others.length);
    expect(contentionOf(asks('a'))).toBe(contentionOf(asks('a')));
  });
});

describe('jobs with keys', () => {
  it('travel together, and are sent once, while no other process holds one of the keys', async () => {
    const { sent, ask } = contestable();
    await Promise.all(['a', 'b', 'a'].map((key) => ask(key)));
    expect(sent).toEqual([['a', 'b', 'a']]);
  });

  it('are sent again one key at a time when one is contested, and only that one waits', async () => {
    const { clock, held, sent, told, ask } = contestable();
    held.add('b');
    const all = ['a', 'b', 'c'].map((key) => ask(key));
    await clock.advance(0);
    expect(sent).toEqual([['a', 'b', 'c'], ['a'], ['b'], ['c']]);
    expect(told).toEqual(['a', 'c']);
    held.clear();
    await clock.advance(100);
    await Promise.all(all);
    expect(sent.slice(4)).toEqual([['b']]);
    expect(told).toEqual(['a', 'c', 'b']);
  });

  it('are not sent with a key that is known to be contested: requests for that key wait together', async () => {
    const { clock, held, sent, told, ask } = contestable();
    held.add('a');
    const first = ask('a');
    await clock.advance(0);
    const known = sent.length;
    const all = [first, ask('a'), ask('b'), ask('a', 'another'), ask('a')];
    await clock.advance(0);
    expect(sent.slice(known)).toEqual([['b', 'another a']]);
    expect(told).toEqual(['b', 'a']);
    held.clear();
    await clock.advance(100);
    await Promise.all(all);
    // One finds out for all; then they go on together.
    expect(sent.slice(known + 1)).toEqual([['a'], ['a', 'a']]);
  });

  it('are not delayed by any number of contested keys, also when one more of them is sent with them', async () => {
    const { clock, held, told, ask } = contestable(250);
    const keys = Array.from({ length: 40 }, (_, n) => `held ${n}`);
    for (const key of keys) held.add(key);
    const waiting = keys.slice(1).map((key) => ask(key));
    await clock.advance(12_000);
    await ask('free');
    waiting.push(ask('held 0'), ask('as free'));
    await clock.advance(600);
    expect(told).toEqual(['free', 'as free']);
    held.clear();
    await clock.advance(10_000);
    await Promise.all(waiting);
    expect(told.slice(2).toSorted()).toEqual(keys.toSorted());
  });

  it('fail only where the key stays contested, each after the same time', async () => {
    const { clock, held, sent, told, ask } = contestable();
    held.add('b');
    const early = [ask('a'), ask('b')];
    await clock.advance(20_000);
    const late = ask('b');
    await clock.advance(15_000);
    await Promise.all(early);
    expect(told).toEqual(['a', 'b: STORE_BUSY']);
    held.clear();
    await clock.advance(5_000);
    await late;
    expect(told.slice(2)).toEqual(['b']);
    expect(sent.length).toBeLessThan(100);
    await ask('b');
    expect(sent.at(-1)).toEqual(['b']);
  });

  it('are not sent after their time has run out before their turn', async () => {
    const clock = new VirtualClock();
    const sent: number[] = [];
    // As SQLite is while another process holds the write lock, which is no matter of keys.
    const batch = new KeyedBatch(
      async (jobs) => {
        sent.push(jobs.length);
        await new Promise<void>((resolve) => clock.after(10_000, resolve));
        throw new StoreBusyError('locked');
      },
      { limit: 100 },
      clock,
    );
    const all = Promise.allSettled(['a', 'b', 'c', 'd', 'e', 'f'].map((key) => batch.add([keyed(key)])));
    await clock.advance(60_000);
    for (const one of await all) expect(one).toMatchObject({ status: 'rejected', reason: { code: 'STORE_BUSY' } });
    expect(sent.length).toBeLessThan(6);
  });

  it('that wait for a key are rejected one by one when the store fails', async () => {
    const clock = new VirtualClock();
    const answers: (Error | null)[] = [new StoreBusyError('held'), new StoreUnavailableError('away'), null];
    const batch = new KeyedBatch(
      async (jobs): Promise<Enqueued[]> => {
        const error = answers.shift();
        if (error) throw error;
        return accepted(jobs);
      },
      { limit: 100 },
      clock,
    );
    const all = Promise.allSettled([batch.add([keyed('a')]), batch.add([keyed('a')])]);
    await clock.advance(0);
    expect(await all).toMatchObject([{ reason: { code: 'STORE_UNAVAILABLE' } }, { status: 'fulfilled' }]);
  });
});
