// "Not yet" is no failure: a snoozed run spends no attempt.

import { defineJob, Mulligan } from 'mulligan';

let polls = 0;
const fetchReport = defineJob<{ reportId: string }>({
  name: 'report.fetch',
  retry: { maxAttempts: 1 },
  run({ reportId }, context) {
    const isReady = ++polls > 3;
    if (!isReady) context.snooze('150ms');
    console.log(
      `report ${reportId} is ready: run ${context.run}, attempt ${context.attempt} of ${context.maxAttempts}`,
    );
  },
});

await using mulligan = await Mulligan.open('memory:', { jobs: [fetchReport] });
const done = Promise.withResolvers<unknown>();
mulligan.on('released', ({ run, delayMs }) => console.log(`run ${run}: not ready, again in ${delayMs} ms`));
mulligan.on('completed', done.resolve);
mulligan.work();
const { id } = await mulligan.enqueue(fetchReport, { reportId: 'q3' });
await done.promise;
const job = await mulligan.jobs.get(id);
console.log(`${job?.state}: ${job?.runs} runs, ${job?.attempts} attempt`);
