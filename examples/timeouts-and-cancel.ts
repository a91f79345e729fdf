// A run that takes too long is aborted through its signal, and fails if it does not return; a job that is no longer wanted is
// cancelled, waiting or running, from any process that has the store open.

import { setTimeout as sleep } from 'node:timers/promises';
import { Cancel, defineJob, Mulligan } from 'mulligan';

const slowOnce = defineJob({
  name: 'image.render',
  timeout: '200ms',
  retry: { backoff: { kind: 'fixed', base: '50ms' } },
  // Pass the signal on: fetch, timers and child processes take one.
  run: (_, { attempt, signal }) => sleep(attempt === 1 ? 60_000 : 10, undefined, { signal }),
});

const long = defineJob({
  name: 'video.encode',
  run: (_, { signal }) => sleep(60_000, undefined, { signal }),
});

const changesItsMind = defineJob({
  name: 'newsletter.send',
  run() {
    throw new Cancel('the subscriber has left');
  },
});

await using mulligan = await Mulligan.open('memory:', { jobs: [slowOnce, long, changesItsMind] });

/** The next event of a kind. */
function next(event: 'started' | 'completed' | 'cancelled'): Promise<void> {
  return new Promise((resolve) => {
    const stop = mulligan.on(event, ({ name }) => {
      stop();
      console.log(`${name}: ${event}`);
      resolve();
    });
  });
}

mulligan.on('retrying', ({ name, error, delayMs }) =>
  console.log(`${name}: ${error?.message}; again in ${delayMs} ms`),
);
mulligan.work();

const completed = next('completed');
await mulligan.enqueue(slowOnce, null);
await completed;

const waiting = await mulligan.enqueue(long, null, { delay: '1h' });
console.log(`a job that waits: ${await mulligan.jobs.cancel(waiting.id)}`);

const started = next('started');
const running = await mulligan.enqueue(long, null);
await started;
// Its signal aborts: at once in this process, within a second in another one. A handler that returns all the same completes
// its job; one that throws, as `sleep` does here, ends it as cancelled.
const cancelled = next('cancelled');
console.log(`a job that runs: ${await mulligan.jobs.cancel(running.id)}`);
await cancelled;
console.log(`a job that has ended: ${await mulligan.jobs.cancel(running.id)}`);

const gaveUp = next('cancelled');
await mulligan.enqueue(changesItsMind, null);
await gaveUp;
