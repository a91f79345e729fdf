// What an error means for its job: permanent, environment, or the job's own. A control error that the handler threw
// decides first, then the definition's classify, then its rules, then the default rules; never the text of a message.

import { defineJob, Unrecoverable } from 'mulligan';
import { testQueue } from 'mulligan/testing';

class AccountClosed extends Error {}

const failures: Record<string, () => unknown> = {
  'a plain error': () => new Error('something broke'),
  'Unrecoverable was thrown': () => new Unrecoverable('the order has no items'),
  'HTTP 503': () => Object.assign(new Error('try later'), { status: 503 }),
  'HTTP 404': () => Object.assign(new Error('gone'), { response: { status: 404 } }),
  'HTTP 429': () => Object.assign(new Error('slow down'), { status: 429, headers: { 'retry-after': '20' } }),
  'a refused connection, as a cause': () =>
    new Error('fetch failed', { cause: Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }) }),
  'a rule of the definition': () => Object.assign(new Error('rate'), { code: 'QUOTA_SPENT' }),
  'an error class, by classify': () => new AccountClosed(),
  'a text, and no error at all': () => 'oops',
};

const job = defineJob<string>({
  name: 'example',
  // Without it, a job that only fails by its environment would be taken for one in an outage, and tried for a day.
  resource: false,
  retry: { maxAttempts: 2, backoff: { kind: 'fixed', base: '1s' }, jitter: 'none' },
  // Data, tried before the default rules.
  rules: [{ code: 'QUOTA_SPENT', class: 'environment' }],
  // A function, tried before all rules; undefined leaves it to them.
  classify: (error) => (error instanceof AccountClosed ? 'permanent' : undefined),
  run(what) {
    throw failures[what]?.();
  },
});

await using queue = await testQueue({ jobs: [job] });
for (const what of Object.keys(failures)) {
  const { id } = await queue.mulligan.enqueue(job, what);
  await queue.drain();
  const [first] = await queue.mulligan.jobs.runs(id);
  if (!first) continue;
  const { decision } = first;
  const decided = decision.kind === 'retry' ? `retry after ${decision.delayMs} ms (${decision.why})` : decision.kind;
  console.log(`${what}: ${decided}, by rule ${decision.rule}`);
}
