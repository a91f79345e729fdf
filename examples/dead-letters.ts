// A dead job is kept with its reason and its whole ledger. Review it, redrive it when the cause is fixed, or delete it.
// Bringing it back is a redrive, never a "retry".

import { defineJob, type LogEntry, Mulligan, Unrecoverable } from 'mulligan';

let isFixed = false;
const post = defineJob<{ invoice: number }>({
  name: 'invoice.post',
  retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '20ms' } },
  run({ invoice }) {
    if (invoice === 13) throw new Unrecoverable('invoice 13 has no customer');
    if (!isFixed) throw new Error('the ledger is closed');
  },
  // Best effort, in the process that settled the last run: good for an alert, not for bookkeeping.
  onDead: ({ payload, decision }) => console.log(`onDead: ${JSON.stringify(payload)}, by ${decision.rule}`),
});

// By default the first dead job of each kind is logged on standard error, and then how many died like it. `log` takes it.
const log = ({ level, message }: LogEntry): void => console.log(`log: ${level}: ${message}`);
await using mulligan = await Mulligan.open('memory:', { jobs: [post], log });
const buried = Promise.withResolvers<void>();
const redone = Promise.withResolvers<void>();
let dead = 0;
let completed = 0;
mulligan.on('dead', () => {
  if (++dead === 4) buried.resolve();
});
mulligan.on('completed', () => {
  if (++completed === 3) redone.resolve();
});
mulligan.work();
await mulligan.enqueueMany(post, [
  { input: { invoice: 11 } },
  { input: { invoice: 12 } },
  { input: { invoice: 13 } },
  { input: { invoice: 14 } },
]);
await buried.promise;

console.log('\nDead:');
for (const job of await mulligan.dead.list({ name: 'invoice.post' })) {
  console.log(`  ${JSON.stringify(job.payload)} ${job.deadReason} after ${job.attempts}: ${job.lastError?.message}`);
}

// A dry run first. Conditions add up; at least one is needed.
const selection = { name: 'invoice.post', reason: 'exhausted', limit: 100 } as const;
const preview = await mulligan.dead.redrive({ ...selection, dryRun: true });
console.log(`\na redrive would bring back ${preview.count}`);
isFixed = true;
const { ids, skipped } = await mulligan.dead.redrive(selection);
console.log(`redriven ${ids.length}, skipped ${skipped.length}`);
await redone.promise;
const [redriven] = ids;
if (redriven) {
  const runs = await mulligan.jobs.runs(redriven);
  console.log(`its ledger goes on: ${runs.map(({ run, outcome }) => `${run} ${outcome}`).join(', ')}`);
}

const gone = await mulligan.dead.discard({ reason: 'unrecoverable' });
console.log(`discarded ${gone.count}; dead now: ${(await mulligan.dead.list()).length}`);
