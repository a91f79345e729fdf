// Retries in a queue of their own, with a worker of their own: the strictest way to keep them from fresh work.

import { defineJob, Mulligan } from 'mulligan';

const importRow = defineJob<{ row: number }>({
  name: 'row.import',
  queue: 'imports',
  retryQueue: 'imports.retry',
  retry: { backoff: { kind: 'fixed', base: '20ms' } },
  run({ row }, { attempt }) {
    if (row % 3 === 0 && attempt === 1) throw new Error(`row ${row} is locked`);
  },
});

await using mulligan = await Mulligan.open('memory:', { jobs: [importRow] });
const startsByQueue: Record<string, number> = {};
const done = Promise.withResolvers<void>();
let completed = 0;
mulligan.on('started', ({ queue }) => {
  startsByQueue[queue] = (startsByQueue[queue] ?? 0) + 1;
});
mulligan.on('completed', () => {
  if (++completed === 30) done.resolve();
});

mulligan.work({ queues: ['imports'], concurrency: 20 });
mulligan.work({ queues: ['imports.retry'], concurrency: 1 });
await mulligan.enqueueMany(
  importRow,
  Array.from({ length: 30 }, (_, row) => ({ row })).map((input) => ({ input })),
);
await done.promise;
for (const [queue, starts] of Object.entries(startsByQueue)) console.log(`${queue}: ${starts} starts`);
