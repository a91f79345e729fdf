import { describe, expect, it } from 'vitest';
import { Batch, Batcher } from './batch.ts';

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

async function ask<Answer>(batch: Pick<Batch<number, Answer>, 'add'>, item: number): Promise<Answer> {
  const [answer] = await batch.add([item]);
  return answer as Answer;
}

describe('a batch', () => {
  it('sends what was added in one tick as one call, and gives each caller its own answer', async () => {
    const { send, sent, answer, reached } = wire();
    const batch = new Batch(send, { limit: 100 });
    const all = Promise.all([3, 1, 2].map((item) => ask(batch, item)));
    await reached(1);
    expect(sent).toEqual([[3, 1, 2]]);
    answer(0);
    expect(await all).toEqual(['answer 3', 'answer 1', 'answer 2']);
    expect(sent).toHaveLength(1);
  });

  it('gathers items that are added during a call, and sends them with the next one', async () => {
    const { send, sent, answer, reached } = wire();
    const batch = new Batch(send, { limit: 100 });
    const first = ask(batch, 1);
    await reached(1);
    const later = [ask(batch, 2), ask(batch, 3)];
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
    const batch = new Batch(send, { limit: 100 });
    const first = batch.add([1]);
    await reached(1);
    const gathered = ask(batch, 2);
    const again = first.then(() => batch.add([3]));
    answer(0);
    await reached(2);
    answer(1);
    await Promise.all([gathered, again]);
    expect(sent).toEqual([[1], [2, 3]]);
  });

  it('keeps together what one caller adds at once, and answers it in its order', async () => {
    const { send, sent, answer, reached } = wire();
    const batch = new Batch(send, { limit: 4 });
    const all = [batch.add([3, 1]), batch.add([2]), batch.add([5, 4]), batch.add([6, 7, 8, 9, 10])];
    for (let call = 0; call < 3; call++) {
      await reached(call + 1);
      answer(call);
    }
    expect(await Promise.all(all)).toEqual([
      ['answer 3', 'answer 1'],
      ['answer 2'],
      ['answer 5', 'answer 4'],
      ['answer 6', 'answer 7', 'answer 8', 'answer 9', 'answer 10'],
    ]);
    expect(sent).toEqual([
      [3, 1, 2],
      [5, 4],
      [6, 7, 8, 9, 10],
    ]);
  });

  it('sends no more than its limit at once, in the order it was given', async () => {
    const { send, sent, answer, reached } = wire();
    const batch = new Batch(send, { limit: 2 });
    const all = Promise.all([1, 2, 3, 4, 5].map((item) => ask(batch, item)));
    for (let call = 0; call < 3; call++) {
      await reached(call + 1);
      answer(call);
    }
    expect(await all).toHaveLength(5);
    expect(sent).toEqual([[1, 2], [3, 4], [5]]);
  });

  it('sends no more bytes at once than its bound, unless one caller adds more', async () => {
    const { send, sent, answer, reached } = wire();
    const batch = new Batch(send, { limit: 100, maxBytes: 10, bytesOf: (item) => item });
    const all = [batch.add([4]), batch.add([3, 3]), batch.add([1]), batch.add([20]), batch.add([1])];
    for (let call = 0; call < 4; call++) {
      await reached(call + 1);
      answer(call);
    }
    expect(await Promise.all(all)).toHaveLength(5);
    expect(sent).toEqual([[4, 3, 3], [1], [20], [1]]);
  });

  it('that fails rejects each of its callers, and no others', async () => {
    const { send, answer, fail, reached } = wire();
    const batch = new Batch(send, { limit: 2 });
    const all = [1, 2, 3].map((item) => ask(batch, item));
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

  it('goes on after a sender that throws at once or returns nonsense', async () => {
    const senders = [
      () => {
        throw new Error('at once');
      },
      () => Promise.resolve(undefined as never),
      () => Promise.resolve([]),
      (items: readonly number[]) => Promise.resolve(items),
    ];
    const batch = new Batch<number, number>((items) => (senders.shift() as (typeof senders)[3])(items), { limit: 10 });
    await expect(ask(batch, 1)).rejects.toThrow('at once');
    await expect(ask(batch, 2)).rejects.toThrow(TypeError);
    await expect(ask(batch, 3)).rejects.toThrow('expected 1 answers, got 0');
    expect(await ask(batch, 4)).toBe(4);
  });
});

describe('a batcher', () => {
  it('is settled once nothing waits and no call is under way, also after a call has failed', async () => {
    const { send, answer, fail, reached } = wire();
    const fates: string[] = [];
    const batcher = new Batcher(
      send,
      { answered: (item) => fates.push(`${item} answered`), failed: (item) => fates.push(`${item} failed`) },
      { limit: 1 },
    );
    await batcher.settled();
    batcher.add(1);
    batcher.add(2);
    let settled = false;
    const watching = batcher.settled().then(() => {
      settled = true;
    });
    await reached(1);
    fail(0, new Error('no'));
    await reached(2);
    expect(settled).toBe(false);
    answer(1);
    await watching;
    expect(fates).toEqual(['1 failed', '2 answered']);
  });

  it('waits for `gather` before each call, and sends all items that were added by then', async () => {
    const { send, sent, answer, reached } = wire();
    const gathered = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const waits = gathered.map(({ promise }) => promise);
    const answers: [number, string][] = [];
    const batcher = new Batcher(
      send,
      { answered: (item, reply) => answers.push([item, reply]), failed: () => {} },
      { limit: 100, gather: () => waits.shift() ?? Promise.resolve() },
    );
    batcher.add(1);
    await new Promise(setImmediate);
    batcher.add(2);
    expect(sent).toEqual([]);
    gathered[0]?.resolve();
    await reached(1);
    batcher.add(3);
    answer(0);
    await new Promise(setImmediate);
    expect(sent).toEqual([[1, 2]]);
    gathered[1]?.resolve();
    await reached(2);
    answer(1);
    await batcher.settled();
    expect(answers).toEqual([
      [1, 'answer 1'],
      [2, 'answer 2'],
      [3, 'answer 3'],
    ]);
  });
});
