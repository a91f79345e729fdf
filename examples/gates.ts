// A server is down for ten minutes. The jobs that need it wait behind its gate, spend no attempts, and start at a rising
// rate when it is back. On a virtual clock, so that it takes no time; `mulligan.work()` does the same on a real one.

import { defineJob } from 'mulligan';
import { testQueue } from 'mulligan/testing';

let isDown = true;
let calls = 0;

const sendEmail = defineJob<{ to: string }>({
  name: 'email.send',
  resource: 'smtp', // all definitions that name it share its gate; (input) => ['webhook', input.host] makes one per host
  run() {
    calls++;
    if (isDown) throw Object.assign(new Error('connection refused'), { code: 'ECONNREFUSED' });
  },
});

await using queue = await testQueue({ jobs: [sendEmail], retention: { completed: null } });
const { mulligan, clock } = queue;
const startedAt = clock.now();
mulligan.on('gate', ({ gate, change, rule, at }) => {
  // `gate` is { kind, name }: soft gates, of jobs without a resource, are told of too.
  console.log(`after ${((at - startedAt) / 1_000).toFixed(1)} s: gate ${gate.name} ${change} (${rule})`);
});

const inputs = Array.from({ length: 500 }, (_, n) => ({ to: `user-${n}@example.com` }));
const [first] = await mulligan.enqueueMany(
  sendEmail,
  inputs.map((input) => ({ input })),
);
await clock.advance(10 * 60_000);
// What `mulligan gates show smtp` prints.
const { gate, explanation } = await mulligan.gates.show('smtp');
console.log(`${calls} calls to a dead server, ${gate.waiting} jobs wait.\n  ${explanation.join('\n  ')}`);

isDown = false;
await queue.drain();
const { states, totals } = await mulligan.stats();
console.log(`${states.completed} completed, ${states.dead} dead`);
// Deferred: it ran and failed during the outage. Released: its worker had it and returned it unstarted, as the gate had opened.
const { deferred, released } = totals.runs;
console.log(`starts that cost no attempt: ${deferred} deferred, ${released} released before they called the server`);
console.log(`attempts of the first job: ${(await mulligan.jobs.get(first?.id ?? ''))?.attempts}`);
