import { defineJob, type Mulligan } from '../../src/index.ts';

const limited = defineJob<number>({ name: 'sync', limit: { name: 'shopify', concurrency: 1 } });
const gated = defineJob<number>({ name: 'mail', resource: 'smtp' });

/** 60 due jobs behind a limit, 3 behind a gate, 2 of a paused queue and one that is not due. */
export async function holdJobs(mulligan: Mulligan): Promise<void> {
  const inputs = (length: number) => Array.from({ length }, (_, input) => ({ input }));
  await mulligan.enqueueMany(limited, inputs(60));
  // As a process that was opened with the definition would.
  await mulligan.limits.set('shopify', { concurrency: 1 });
  await mulligan.enqueueMany(gated, inputs(3));
  await mulligan.enqueueMany(
    'x',
    [...inputs(2), { input: 3, delay: '1h' as const }].map((one) => ({ ...one, queue: 'c' })),
  );
  await mulligan.gates.open('smtp');
  await mulligan.queues.pause('c');
}

/** What doctor says of them. */
export const heldWords =
  '2 due jobs in paused queues: c (2 jobs); 3 due jobs behind gates: smtp (3 jobs); 60 due jobs behind limits: shopify (60 jobs)';
