import { expect, it } from 'vitest';
import { defineJob } from '../../definition.ts';
import { testQueue } from '../../testing/queue.ts';
import { TopReader } from './snapshot.ts';

const ok = defineJob({ name: 'ok', queue: 'good', run() {} });
const bad = defineJob({
  name: 'bad',
  queue: 'broken',
  limit: { name: 'shop', concurrency: 1 },
  retry: { maxAttempts: 1 },
  run() {
    throw new Error('refused');
  },
});

it('counts runs that ended since the reading before, by queue and second', async () => {
  await using queue = await testQueue({ jobs: [ok, bad] });
  const { mulligan, clock } = queue;
  const reader = new TopReader(mulligan, clock);
  await mulligan.enqueue(ok, {});
  await queue.drain();
  const first = await reader.read();
  expect(first.queues).toMatchObject([{ queue: 'good', completedPerSecond: null, failedPerSecond: null }]);
  for (let n = 0; n < 6; n++) await mulligan.enqueue(ok, {});
  await mulligan.enqueue(bad, {});
  await queue.drain();
  await clock.advance(2_000 - (clock.now() - first.at));
  expect((await reader.read()).queues).toMatchObject([
    { queue: 'broken', completedPerSecond: 0, failedPerSecond: 0.5, dead: 1 },
    { queue: 'good', completedPerSecond: 3, failedPerSecond: 0, dead: 0 },
  ]);
  await clock.advance(1_000);
  expect((await reader.read()).queues).toMatchObject([{ failedPerSecond: 0 }, { completedPerSecond: 0 }]);
});

it('reads what is to be looked at: paused queues, gates that are not closed, limits with waiting jobs, failures', async () => {
  await using queue = await testQueue({ jobs: [ok, bad] });
  const { mulligan, clock } = queue;
  const reader = new TopReader(mulligan, clock);
  await mulligan.enqueue(bad, {});
  await queue.drain();
  await mulligan.queues.pause('broken');
  await mulligan.enqueue(bad, {});
  await mulligan.gates.open('smtp');
  await clock.advance(0);
  const { queues, gates, limits, errors, workers } = await reader.read();
  expect(queues).toMatchObject([{ queue: 'broken', paused: true, ready: 1 }]);
  expect(gates).toMatchObject([{ name: 'smtp', phase: 'open' }]);
  expect(limits).toMatchObject([{ name: 'shop', waiting: 1 }]);
  expect(errors).toMatchObject([{ dead: 1 }]);
  expect(workers).toMatchObject([{ alive: true }]);
  await mulligan.gates.reset('smtp');
  await clock.advance(2 * 3_600_000);
  expect(await reader.read()).toMatchObject({ gates: [], errors: [] });
});
