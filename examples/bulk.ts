// A bad deploy has killed some jobs, and others wait a day for their retries. Find them by tag, try a few, bring the rest
// back, and run the waiting ones now. On a virtual clock; `mulligan dead redrive` and `mulligan jobs run-now` do the same.

import { defineJob } from 'mulligan';
import { testQueue } from 'mulligan/testing';

let isBroken = true;

const deliver = defineJob<{ endpoint: number; attempts: number }>({
  name: 'webhook.deliver',
  tags: ({ endpoint }) => [`endpoint:${endpoint}`],
  retry: { maxAttempts: 3, backoff: { kind: 'fixed', base: '1d' }, jitter: 'none' },
  run() {
    if (isBroken) throw new Error('undefined is not a function');
  },
});

await using queue = await testQueue({ jobs: [deliver], retention: { completed: null }, log: () => {} });
const { mulligan, clock } = queue;

const jobs = Array.from({ length: 200 }, (_, n) => ({ input: { endpoint: n % 4, attempts: 1 } }));
await mulligan.enqueueMany(deliver, jobs.slice(0, 100), { retry: { maxAttempts: 1 } });
await mulligan.enqueueMany(deliver, jobs.slice(100));
await clock.advance(1_000);

// One selection for everything: conditions add up.
const dead = await mulligan.jobs.count({ state: 'dead', name: 'webhook.deliver' });
const retrying = await mulligan.jobs.count({ state: 'retrying', since: '1h', attempts: 1 });
console.log(`${dead.count} dead, ${retrying.count} retrying`);

const selection = { tag: 'endpoint:2' };
const would = await mulligan.dead.redrive({ ...selection, dryRun: true });
console.log(`a redrive would bring back ${would.count}, such as ${JSON.stringify(would.samples[0]?.payload)}`);

// Not fixed yet: the canaries fail again, and the rest stays dead.
const tooEarly = mulligan.dead.redrive({ ...selection, canary: 3, by: 'ann' });
await clock.advance(1_000);
console.log(`stopped: ${(await tooEarly).stopped?.replace(/[0-9a-f-]{36}/, 'JOB')}`);

isBroken = false;
const redrive = mulligan.dead.redrive({ ...selection, canary: 3, rate: '10/s', by: 'ann' });
await clock.advance(1_000);
console.log(`redriven: ${(await redrive).count}`);
const hurried = await mulligan.jobs.runNow({ state: 'retrying', rate: '50/s', by: 'ann' });
console.log(`brought forward: ${hurried.count}`);
await clock.advance(10_000);
console.log((await mulligan.stats()).states);

for (const { action, by, state, changed } of await mulligan.audit.list()) {
  console.log(`${by}: ${action}, ${changed} jobs, ${state}`);
}
