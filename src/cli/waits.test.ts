import { expect, it } from 'vitest';
import { z } from 'zod';
import { defineJob } from '../definition.ts';
import { testQueue } from '../testing/queue.ts';
import { waitReasons } from './waits.ts';

const strict = defineJob({ name: 'strict', input: z.object({ to: z.string() }), run: () => {} });
const versioned = defineJob<null>({ name: 'versioned', version: 2, run: () => {} });
const later = defineJob<null>({ name: 'versioned', version: 3, run: () => {} });

it.each([
  [
    'whose name no worker knows',
    'unknown',
    'has no handler for it; it waits for a worker that knows unknown. If none comes, it is dead 7d after it fell due,',
  ],
  [
    'of a later version',
    later,
    'has no handler for it; it waits for a worker that knows versioned, version 3 or later. If none comes, it is dead 7d after it fell due,',
  ],
  [
    'whose payload was rejected',
    defineJob<null>({ name: 'strict', run: () => {} }),
    'rejected its payload, as its last error says; other workers that know strict try it. If none can read it, it is dead after 2',
  ],
] as const)('a job %s says so while it waits', async (_, target, reason) => {
  await using queue = await testQueue({ jobs: [strict, versioned], work: { name: 'w' } });
  const { id } = await queue.mulligan.enqueue(target as never, null as never);
  await queue.clock.advance(10);
  const job = await queue.mulligan.jobs.get(id);
  const [said, ...more] = await waitReasons(queue.mulligan, job as never, await queue.mulligan.jobs.runs(id));
  expect(said).toContain(reason);
  expect(said).toMatch(/^Worker w-/);
  const unserved = 'No live worker that serves its queue default has a handler for unknown. See mulligan workers list.';
  expect(more).toEqual(target === 'unknown' ? [unserved] : []);
});

it('a job in a queue that no live worker serves says so', async () => {
  await using queue = await testQueue({ jobs: [strict], work: { queues: ['served'] } });
  const { id } = await queue.mulligan.enqueue('strict', { to: 'a' }, { queue: 'other' });
  await queue.clock.advance(10);
  const job = await queue.mulligan.jobs.get(id);
  expect(await waitReasons(queue.mulligan, job as never, [])).toEqual([
    'No live worker serves its queue other. See mulligan workers list.',
  ]);
});

it('a job that is not due says how to start it now, but not where a limit, a gate or a pause may keep it waiting', async () => {
  const limited = defineJob<null>({ name: 'limited', limit: { name: 'one', concurrency: 1 }, run: () => {} });
  const gated = defineJob<null>({ name: 'gated', resource: 'smtp', run: () => {} });
  await using queue = await testQueue({ jobs: [limited, gated], work: {} });
  const { mulligan } = queue;
  const said = async (name: string, options: { queue?: string } = {}): Promise<string | undefined> => {
    const { id } = await mulligan.enqueue(name, null, { delay: '1h', ...options });
    await queue.clock.advance(10);
    const [first] = await waitReasons(mulligan, (await mulligan.jobs.get(id)) as never, []);
    return first?.replace(id, 'ID').replace(/^It is due \S+ \(.*?\)/, 'DUE');
  };
  expect(await said('gated')).toBe('DUE; mulligan jobs run-now ID starts it now.');
  expect(await said('limited')).toBe('DUE; mulligan jobs run-now ID makes it due now.');
  await mulligan.gates.open('smtp');
  expect(await said('gated')).toBe('DUE.');
  await mulligan.gates.unpin('smtp');
  await mulligan.queues.pause('default');
  expect(await said('limited')).toBe('DUE.');
});
