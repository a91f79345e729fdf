// Inside a lane: the lower priority number first, then the job that fell due first. Between lanes: while fresh work
// waits, retries get their share of the places and no more; what one lane does not use, the other takes.

import { defineJob, Mulligan } from 'mulligan';

const job = defineJob<string>({ name: 'job', run: () => {} });

{
  await using mulligan = await Mulligan.open('memory:', { jobs: [job] });
  const names = new Map<string, string>();
  for (const priority of [5, 9, 5, 0]) {
    const { id } = await mulligan.enqueue(job, 'x', { priority });
    names.set(id, `job ${names.size + 1} (priority ${priority})`);
  }
  const order: string[] = [];
  mulligan.on('started', ({ id }) => order.push(names.get(id) ?? id));
  const worker = mulligan.work({ concurrency: 1 });
  await worker.whenIdle();
  console.log(`started in this order: ${order.join(', ')}`);
}

{
  const failing = defineJob({
    name: 'failing',
    retry: { maxAttempts: 1_000, backoff: { kind: 'fixed', base: 0 } },
    run() {
      throw new Error('again and again');
    },
  });
  await using mulligan = await Mulligan.open('memory:', { jobs: [job, failing] });

  // 200 jobs that fail for ever: after one run each, all of them wait in the retry lane.
  await mulligan.enqueueMany(
    failing,
    Array(200)
      .fill(null)
      .map((input) => ({ input })),
  );
  let failed = 0;
  const allInRetryLane = Promise.withResolvers<void>();
  const stopCounting = mulligan.on('retrying', ({ attempt }) => {
    if (attempt === 1 && ++failed === 200) allInRetryLane.resolve();
  });
  const first = mulligan.work();
  await allInRetryLane.promise;
  stopCounting();
  await first.stop();

  // 100 fresh jobs beside them.
  await mulligan.enqueueMany(
    job,
    Array(100)
      .fill('x')
      .map((input) => ({ input })),
  );
  const starts: string[] = [];
  const enough = Promise.withResolvers<void>();
  mulligan.on('started', ({ name }) => {
    if (starts.push(name) === 200) enough.resolve();
  });
  // Also: maxRetriesInFlight caps a queue's running retries over all workers.
  mulligan.work({ concurrency: 10, retryShare: 0.2 });
  await enough.promise;
  const untilLastFresh = starts.slice(0, starts.lastIndexOf('job') + 1);
  const fresh = untilLastFresh.filter((name) => name === 'job').length;
  console.log(`while both waited: ${fresh} fresh of ${untilLastFresh.length} starts`);
  console.log(`afterwards: ${starts.length - untilLastFresh.length} retries, and nothing fresh was left`);
}
