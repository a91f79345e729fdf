// A deploy is no failure: on SIGTERM the worker claims no more, lets runs finish within a grace, aborts the rest and
// releases jobs that did not finish. No attempt is spent.

import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineJob, Mulligan } from 'mulligan';

const work = defineJob<{ ms: number }>({
  name: 'work',
  retry: { maxAttempts: 1 },
  run: ({ ms }, { run, signal }) => sleep(run === 1 ? ms : 1, undefined, { signal }),
});

await using folder = await mkdtempDisposable(join(tmpdir(), 'mulligan-'));
const url = `sqlite:${join(folder.path, 'jobs.db')}`;

{
  const mulligan = await Mulligan.open(url, { jobs: [work] });
  mulligan.on('completed', ({ run }) => console.log(`run ${run} completed`));
  mulligan.on('released', ({ run, decision }) => console.log(`run ${run} released (${decision.rule})`));
  const bothStarted = Promise.withResolvers<void>();
  let started = 0;
  mulligan.on('started', () => {
    if (++started === 2) bothStarted.resolve();
  });
  await mulligan.enqueueMany(work, [{ input: { ms: 300 } }, { input: { ms: 60_000 } }]);
  mulligan.work();
  await bothStarted.promise;

  // All that an application needs: wait for the signal, then close. Here the process sends it to itself.
  const signal = once(process, 'SIGTERM');
  process.kill(process.pid, 'SIGTERM');
  await signal;
  console.log('SIGTERM');
  await mulligan.close({ grace: '1s' });
  console.log('closed');
}

{
  console.log('\nthe next process:');
  await using mulligan = await Mulligan.open(url, { jobs: [work] });
  const done = Promise.withResolvers<unknown>();
  mulligan.on('completed', ({ run, attempt }) =>
    done.resolve(console.log(`run ${run} completed as attempt ${attempt}`)),
  );
  mulligan.work();
  await done.promise;
}
