// Tests of jobs and their retries, without a server and without waiting: a queue in memory on a clock that stands
// still until the test moves it. With node:test here; any runner works.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineJob } from 'mulligan';
import { testQueue } from 'mulligan/testing';

const outbox: string[] = [];
let serverIsDown = false;

const sendEmail = defineJob<{ to: string }>({
  name: 'email.send',
  retry: { maxAttempts: 5, backoff: { kind: 'exponential', base: '1m' }, jitter: 'none' },
  run({ to }) {
    if (serverIsDown) throw Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
    if (to === 'full@example.com') throw new Error('mailbox full');
    outbox.push(to);
  },
});

test('an email is sent', async () => {
  await using queue = await testQueue({ jobs: [sendEmail] });
  const { id } = await queue.mulligan.enqueue(sendEmail, { to: 'ada@example.com' });
  await queue.drain();
  assert.equal((await queue.mulligan.jobs.get(id))?.state, 'completed');
  assert.deepEqual(outbox, ['ada@example.com']);
});

test('an email survives an outage of its server for longer than its attempts last', async () => {
  await using queue = await testQueue({ jobs: [sendEmail] });
  serverIsDown = true;
  const { id } = await queue.mulligan.enqueue(sendEmail, { to: 'bob@example.com' });
  await queue.clock.advance(60 * 60_000);
  serverIsDown = false;
  await queue.drain();
  const runs = await queue.mulligan.jobs.runs(id);
  // All that is known points to an outage, so most of its failures did not count.
  assert.ok(runs.some(({ outcome }) => outcome === 'deferred'));
  assert.equal(runs.at(-1)?.outcome, 'completed');
});

test('an email that its server refuses is dead after 15 minutes of waiting, and keeps its reason', async () => {
  await using queue = await testQueue({ jobs: [sendEmail] });
  const { id } = await queue.mulligan.enqueue(sendEmail, { to: 'full@example.com' });
  const startedAt = queue.clock.now();
  await queue.drain();
  const job = await queue.mulligan.jobs.get(id);
  assert.equal(job?.deadReason, 'exhausted');
  assert.equal(job?.lastError?.message, 'mailbox full');
  assert.equal(job?.finishedAt, startedAt + (1 + 2 + 4 + 8) * 60_000);
});
