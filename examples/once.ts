// An effect that must not happen twice: its result is recorded durably, and later runs of the same job get the record.
// A crash between the effect and its recording lets it run again: give the other side an idempotency key too.

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineJob, Mulligan } from 'mulligan';

let charges = 0;
async function chargeCard(cents: number, idempotencyKey: string): Promise<{ receipt: string }> {
  charges++;
  console.log(`  charging ${cents} cents, idempotency key ${idempotencyKey.slice(-6)}`);
  return { receipt: `R-${1000 + charges}` };
}

const order = defineJob<{ cents: number }>({
  name: 'order.pay',
  retry: { backoff: { kind: 'fixed', base: '50ms' } },
  async run({ cents }, context) {
    console.log(`attempt ${context.attempt}`);
    const { receipt } = await context.once('charge', () => chargeCard(cents, context.job.id));
    if (context.attempt < 3) throw new Error('the receipt could not be sent');
    console.log(`  sent receipt ${receipt}`);
  },
});

await using folder = await mkdtempDisposable(join(tmpdir(), 'mulligan-'));
await using mulligan = await Mulligan.open(`sqlite:${join(folder.path, 'jobs.db')}`, { jobs: [order] });
const done = Promise.withResolvers<unknown>();
mulligan.on('completed', done.resolve);
mulligan.work();
await mulligan.enqueue(order, { cents: 4200 });
await done.promise;
console.log(`three attempts, ${charges} charge`);
