import { describe, expect, it } from 'vitest';
import { Batch } from './batch.ts';

/** Records what was sent, and answers when the test says so. */
function wire() {
  const sent: (readonly number[])[] = [];
  const answers: PromiseWithResolvers<readonly string[]>[] = [];
  const arrivals: (() => void)[] = [];
  return {
    sent,
    send(items: readonly number[]): Promise<readonly string[]> {
      sent.push(items);
      const answer = Promise.withResolvers<readonly string[]>();
      answers.push(answer);
      for (const resolve of arrivals.splice(0)) resolve();
      return answer.promise;
    },
    /** Resolves once `count` calls have been made. */
    async reached(count: number): Promise<void> {
      while (sent.length < count) await new Promise<void>((resolve) => arrivals.push(resolve));
    },
    answer: (index: number): void => answers[index]?.resolve((sent[index] as number[]).map((item) => `answer ${item}`)),
    fail: (index: number, error: Error): void => answers[index]?.reject(error),
  };
}

describe('a batch', () => {
  it('sends what was added in one tick as one call, and gives each caller its own answer', async () => {
    const { send, sent, answer, reached } = wire();
    const batch = new Batch(send, 100);
    const all = Promise.all([3, 1, 2].map((item) => batch.add(item)));
    await reached(1);
    expect(sent).toEqual([[3, 1, 2]]);
    answer(0);
    expect(await all).toEqual(['answer 3', 'answer 1', 'answer 2']);
    expect(sent).toHaveLength(1);
  });

  it('gathers what comes while a call is under way, and sends it with the next one', async () => {
    const { send, sent, answer, reached } = wire();
    const batch = new Batch(send, 100);
    const first = batch.add(1);
    await reached(1);
    const later = [batch.add(2), batch.add(3)];
    expect(sent).toHaveLength(1);
    answer(0);
    await first;
    await reached(2);
    answer(1);
    expect(await Promise.all(later)).toEqual(['answer 2', 'answer 3']);
    expect(sent).toEqual([[1], [2, 3]]);
  });

  it('lets in callers that add again as soon as they are answered', async () => {
    const { send, sent, answer, reached } = wire();
    const batch = new Batch(send, 100);
    const first = batch.add(1);
    await reached(1);
    const gathered = batch.add(2);
    const again = first.then(() => batch.add(3));
    answer(0);
    await reached(2);
    answer(1);
    await Promise.all([gathered, again]);
    expect(sent).toEqual([[1], [2, 3]]);
  });

  it('waits before each call for as long as it is told to gather, and sends all that came by then', async () => {
    const { send, sent, answer, reached } = wire();
    const gathered = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const waits = gathered.map(({ promise }) => promise);
    const batch = new Batch(send, 100, () => waits.shift() ?? Promise.resolve());
    const first = batch.add(1);
    await new Promise(setImmediate);
    const second = batch.add(2);
    expect(sent).toEqual([]);
    gathered[0]?.resolve();
    await reached(1);
    answer(0);
    await Promise.all([first, second]);
    const third = batch.add(3);
    await new Promise(setImmediate);
    expect(sent).toEqual([[1, 2]]);
    gathered[1]?.resolve();
    await reached(2);
    answer(1);
    expect(await third).toBe('answer 3');
  });

  it('sends no more than its limit at once, in the order it was given', async () => {
    const { send, sent, answer, reached } = wire();
    const batch = new Batch(send, 2);
    const all = Promise.all([1, 2, 3, 4, 5].map((item) => batch.add(item)));
    for (let call = 0; call < 3; call++) {
      await reached(call + 1);
      answer(call);
    }
    expect(await all).toHaveLength(5);
    expect(sent).toEqual([[1, 2], [3, 4], [5]]);
  });

  it('that fails rejects each of its callers, and no others', async () => {
    const { send, answer, fail, reached } = wire();
    const batch = new Batch(send, 2);
    const all = [1, 2, 3].map((item) => batch.add(item));
    await reached(1);
    fail(0, new Error('no'));
    await reached(2);
    answer(1);
    expect(await Promise.allSettled(all)).toMatchObject([
      { status: 'rejected', reason: { message: 'no' } },
      { status: 'rejected', reason: { message: 'no' } },
      { status: 'fulfilled', value: 'answer 3' },
    ]);
  });

  it('survives a sender that throws at once or answers nonsense', async () => {
    const senders = [
      () => {
        throw new Error('at once');
      },
      () => Promise.resolve(undefined as never),
      (items: readonly number[]) => Promise.resolve(items),
    ];
    const batch = new Batch<number, number>((items) => (senders.shift() as (typeof senders)[2])(items), 10);
    await expect(batch.add(1)).rejects.toThrow('at once');
    await expect(batch.add(2)).rejects.toThrow(TypeError);
    expect(await batch.add(3)).toBe(3);
  });

  it('is settled once nothing waits and nothing is under way, failed calls included', async () => {
    const { send, answer, fail, reached } = wire();
    const batch = new Batch(send, 1);
    await batch.settled();
    const all = Promise.allSettled([batch.add(1), batch.add(2)]);
    let settled = false;
    const watching = batch.settled().then(() => {
      settled = true;
    });
    await reached(1);
    fail(0, new Error('no'));
    await reached(2);
    expect(settled).toBe(false);
    answer(1);
    await watching;
    await all;
  });
});
