import { expect, it } from 'vitest';
import { defineJob } from '../definition.ts';
import { Snooze, Unrecoverable } from '../retry/control-errors.ts';
import { testQueue } from '../testing/queue.ts';

type Handler = (signal: AbortSignal) => Promise<unknown>;

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

async function stateAfterCancel(handler: Handler, afterMs: number): Promise<string | undefined> {
  const job = defineJob<null>({ name: 'job', run: (_, { signal }) => handler(signal) });
  await using queue = await testQueue({ jobs: [job], log: () => {} });
  const { id } = await queue.mulligan.enqueue(job, null);
  await queue.clock.advance(1);
  expect(await queue.mulligan.jobs.cancel(id)).toBe('cancelling');
  await queue.clock.advance(afterMs);
  return (await queue.mulligan.jobs.get(id))?.state;
}

it('a handler that returns after its signal has aborted completes its job', async () => {
  expect(await stateAfterCancel((signal) => aborted(signal), 1)).toBe('completed');
});

it.each<[string, (signal: AbortSignal) => unknown]>([
  ['the reason of its signal', (signal) => signal.reason],
  ['any error', () => new Error('no')],
  ['Unrecoverable', () => new Unrecoverable('no')],
  ['Snooze', () => new Snooze('1h')],
])('a handler that throws after its signal has aborted ends its job as cancelled: %s', async (_, thrown) => {
  const handler: Handler = async (signal) => {
    await aborted(signal);
    throw thrown(signal);
  };
  expect(await stateAfterCancel(handler, 1)).toBe('cancelled');
});

it('a handler that ignores its signal ends its job as cancelled after 5 s', async () => {
  const handler: Handler = () => new Promise(() => {});
  expect(await stateAfterCancel(handler, 4_900)).toBe('running');
  expect(await stateAfterCancel(handler, 5_100)).toBe('cancelled');
});
