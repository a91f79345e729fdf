import { workerData } from 'node:worker_threads';
import { systemClock } from '../../src/clock.ts';
import { serve } from '../../src/store/sqlite/serve.ts';

/** A database thread that dies of an error nobody caught, as soon as the test says so through shared memory. */
const { die } = workerData as { die: Int32Array };

serve(systemClock);
void Promise.resolve(Atomics.waitAsync(die, 0, 0).value).then(() => {
  throw new Error('an error nobody caught');
});
