// Policies: how to write them, where, and the delays they give.
// It runs on the virtual clock of mulligan/testing, so that days pass in an instant.

import { defineJob, type EnqueueResult, policies, type RetryOptions } from 'mulligan';
import { testQueue } from 'mulligan/testing';

function alwaysFails(name: string, retry?: RetryOptions) {
  return defineJob({
    name,
    ...(retry === undefined ? {} : { retry }),
    run() {
      throw new Error('no');
    },
  });
}

const jobs = [
  alwaysFails('the default'),
  alwaysFails('a preset', policies.financial),
  alwaysFails('a preset, changed', { ...policies.financial, maxAttempts: 8, jitter: 'none' }),
  alwaysFails('linear', { maxRetries: 4, backoff: { kind: 'linear', base: '10s', max: '25s' }, jitter: 'none' }),
  alwaysFails('fibonacci', { maxAttempts: 7, backoff: { kind: 'fibonacci', base: '1s' }, jitter: 'none' }),
  alwaysFails('a table', { maxAttempts: 5, backoff: { kind: 'table', delays: ['1s', '1m', '1h'] }, jitter: 'none' }),
  alwaysFails('half certain', { jitter: 'equal' }),
  alwaysFails('by up to a fifth', { backoff: { kind: 'fixed', base: '10s' }, jitter: { spread: 0.2 } }),
  alwaysFails('never twice', policies.oneShot),
  alwaysFails('until a deadline', { ...policies.sweep, maxAttempts: 100, deadline: '45s' }),
];

await using queue = await testQueue({
  jobs,
  // Defaults of a queue: weaker than a definition's own options, field by field.
  queues: { nightly: { retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '1h' }, jitter: 'none' } } },
  // No job gets more attempts than this.
  hardCap: 50,
  work: { queues: ['default', 'nightly'] },
});

async function show(what: string, { id, capped }: EnqueueResult): Promise<void> {
  await queue.drain();
  const runs = await queue.mulligan.jobs.runs(id);
  const delays = runs.flatMap(({ decision }) => (decision.kind === 'retry' ? [decision.delayMs] : []));
  const end = runs.at(-1)?.decision;
  const reason = end?.kind === 'dead' ? `dead: ${end.reason}, by ${end.rule}` : '';
  console.log(`${what}\n  ${delays.join(', ') || 'no delay'}; ${reason}`);
  if (capped) console.log(`  the hard cap cut ${capped.asked} attempts to ${capped.hardCap}`);
}

console.log('Delays in ms:\n');
for (const job of jobs) await show(job.name, await queue.mulligan.enqueue(job, null));

const [standard] = jobs;
if (standard) {
  await show(
    'the default, in a queue with its own',
    await queue.mulligan.enqueue(standard, null, { queue: 'nightly' }),
  );
  await show('the default, for one job', await queue.mulligan.enqueue(standard, null, { retry: { maxAttempts: 2 } }));
}
