import { expect, it } from 'vitest';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { Budget } from './budget.ts';
import { jsonResponse } from './sent.ts';

const TOTAL = 1_000_000;
const text = JSON.stringify('x'.repeat(500_000));

async function isFree(budget: Budget): Promise<boolean> {
  let free = false;
  void budget.take(TOTAL).then(() => {
    free = true;
  });
  await Promise.resolve();
  return free;
}

it('an answer keeps its bytes until it is read, and gives back at once what it did not need', async () => {
  const clock = new VirtualClock();
  const budget = new Budget(TOTAL, clock);
  const response = jsonResponse(text, 200, await budget.take(TOTAL), clock);
  expect(response.headers.get('content-length')).toBe(String(text.length));
  (await budget.take(TOTAL - text.length)).release();
  expect(await response.text()).toBe(text);
  expect(await isFree(budget)).toBe(true);
});

it('a client that hangs up gives its bytes back', async () => {
  const clock = new VirtualClock();
  const budget = new Budget(TOTAL, clock);
  const { body } = jsonResponse(text, 200, await budget.take(TOTAL), clock);
  const reader = body?.getReader();
  await reader?.read();
  await reader?.cancel();
  expect(await isFree(budget)).toBe(true);
});

it('a client that reads nothing keeps its bytes for half a minute', async () => {
  const clock = new VirtualClock();
  const budget = new Budget(TOTAL, clock);
  const response = jsonResponse(text, 200, await budget.take(TOTAL), clock);
  await clock.advance(29_999);
  const next = budget.take(TOTAL);
  await clock.advance(1);
  await next;
  await expect(response.text()).rejects.toThrow('the client did not read the answer in time');
});
