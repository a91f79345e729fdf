// A job that fails twice and then succeeds, in a SQLite file, with every run on record.
// Run it: node examples/hello.ts

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineJob, Mulligan } from 'mulligan';

const sendEmail = defineJob<{ to: string }>({
  name: 'email.send',
  retry: { backoff: { kind: 'exponential', base: '100ms' } },
  async run({ to }, { attempt, maxAttempts }) {
    console.log(`attempt ${attempt} of ${maxAttempts}`);
    if (attempt < 3) throw new Error('the mail server hung up');
    console.log(`sent to ${to}`);
  },
});

// In an application this is a path that stays: 'sqlite:jobs.db'.
await using folder = await mkdtempDisposable(join(tmpdir(), 'mulligan-'));
await using mulligan = await Mulligan.open(`sqlite:${join(folder.path, 'jobs.db')}`, { jobs: [sendEmail] });
const done = Promise.withResolvers<unknown>();
mulligan.on('completed', done.resolve);
mulligan.work();

// When this resolves, the job is on disk.
const { id } = await mulligan.enqueue(sendEmail, { to: 'ada@example.com' });
await done.promise;

console.log('\nThe ledger:');
for (const { run, outcome, error, decision } of await mulligan.jobs.runs(id)) {
  const next = 'delayMs' in decision ? ` in ${decision.delayMs} ms` : '';
  console.log(`  run ${run} ${outcome}${error ? ` (${error.message})` : ''} -> ${decision.kind}${next}`);
}
