// At most one live job per name and key. `keyUntil` says how long a job holds its key: until its first start, until its
// end (the default), or for as long as its row is kept.

import { defineJob, Mulligan } from 'mulligan';

const reindex = defineJob<{ customer: number }>({ name: 'search.reindex', run: () => {} });
const forget = defineJob<{ customer: number }>({ name: 'search.forget', run: () => {} });

await using mulligan = await Mulligan.open('memory:', { jobs: [reindex, forget] });

const first = await mulligan.enqueue(reindex, { customer: 42 }, { key: 'customer-42' });
const second = await mulligan.enqueue(reindex, { customer: 42 }, { key: 'customer-42' });
console.log(`enqueued again while it waits: existed ${second.existed}, the same job: ${second.id === first.id}`);

// Keys belong to a job name; another name may use the same key.
const other = await mulligan.enqueue(forget, { customer: 42 }, { key: 'customer-42' });
console.log(`the same key under another name: existed ${other.existed}\n`);

for (const keyUntil of ['started', 'finished', 'pruned'] as const) {
  const options = { key: `until-${keyUntil}`, keyUntil };
  await mulligan.enqueue(reindex, { customer: 1 }, options);
  const worker = mulligan.work();
  await worker.whenIdle();
  await worker.stop();
  const after = await mulligan.enqueue(reindex, { customer: 1 }, options);
  console.log(`keyUntil ${keyUntil}, enqueued again once it has completed: existed ${after.existed}`);
}
