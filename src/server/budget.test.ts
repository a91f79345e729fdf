import { expect, it } from 'vitest';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Budget } from './budget.ts';

it('a request waits for room, the first come first, and one that needs more than all gets all', async () => {
  const budget = new Budget(100, new VirtualClock());
  const first = await budget.take(80);
  const order: string[] = [];
  const large = budget.take(1_000).then((share) => {
    order.push('large');
    return share;
  });
  // It would fit, but must not overtake for ever.
  const small = budget.take(10).then(() => order.push('small'));
  first.shrink(1);
  await Promise.resolve();
  expect(order).toEqual([]);
  first.release();
  (await large).release();
  await small;
  expect(order).toEqual(['large', 'small']);
});

it('a share is given back once', async () => {
  const budget = new Budget(100, new VirtualClock());
  const share = await budget.take(60);
  share.release();
  share.release();
  await budget.take(100);
  let more = false;
  void budget.take(1).then(() => {
    more = true;
  });
  await Promise.resolve();
  expect(more).toBe(false);
});

it('a request that finds no room in time is told to come again, and lets the next one go', async () => {
  const clock = new VirtualClock();
  const budget = new Budget(100, clock);
  await budget.take(50);
  const refused = expect(budget.take(60)).rejects.toMatchObject({
    problem: { status: 503, code: 'TOO_BUSY' },
    headers: { 'retry-after': '2' },
  });
  await clock.advance(9_000);
  const next = budget.take(50);
  await clock.advance(1_000);
  await refused;
  await next;
});
