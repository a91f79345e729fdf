// Jobs that recur: cron with time zones, intervals, one-offs. Time is virtual here, so that hours pass at once; in an
// application, `Mulligan.open` takes the same schedules, and every worker fires them.

import { defineJob } from 'mulligan';
import { testQueue } from 'mulligan/testing';

const report = defineJob<{ kind: string }>({
  name: 'report',
  run: ({ kind }, { job }) => console.log(`  ${clock()} ${kind} report, job ${job.id.slice(0, 8)}`),
});

await using queue = await testQueue({
  jobs: [report],
  schedules: [
    { name: 'hourly', job: report, input: { kind: 'hourly' }, every: '1h' },
    { name: 'morning', job: report, input: { kind: 'morning' }, cron: '0 6 * * *', timezone: 'Europe/Berlin' },
  ],
});
const { schedules } = queue.mulligan;
const clock = (): string => new Date(queue.clock.now()).toISOString().slice(11, 16);

console.log('half a working day with the schedules of the application:');
await queue.clock.advance(6.5 * 3_600_000);

console.log('one that is stored, and leaves a tick out while the job before it is not done:');
await schedules.set('sync', report, { kind: 'sync' }, { every: '30m', overlap: 'skip', misfire: 'skip' });
await schedules.pause('hourly');
await queue.clock.advance(3_600_000);

console.log('once, by hand:');
await schedules.trigger('hourly');
await queue.clock.advance(1_000);

for (const { name, nextAt, paused } of await schedules.list()) {
  console.log(`${name.padEnd(8)} ${paused ? 'paused' : `next at ${new Date(nextAt as number).toISOString()}`}`);
}

console.log('daylight saving: 02:30 in Berlin, around the day of 23 hours');
queue.clock.set(Date.parse('2026-03-27T12:00:00Z'));
await schedules.set('night', report, { kind: 'night' }, { cron: '30 2 * * *', timezone: 'Europe/Berlin' });
for (const at of (await schedules.show('night', { next: 3 }))?.nextTimes ?? []) {
  console.log(`  ${new Date(at).toLocaleString('sv-SE', { timeZone: 'Europe/Berlin' })}`);
}
