import { workerData } from 'node:worker_threads';
import { systemClock } from '../../src/clock.ts';
import { serve } from '../../src/store/sqlite/serve.ts';

/** A database thread that dies when the test says so through shared memory: of an error nobody caught, or without a word. */
const { die, starts, silently } = workerData as { die: Int32Array; starts: Int32Array; silently: boolean };

Atomics.add(starts, 0, 1);
serve(systemClock);
void Promise.resolve(Atomics.waitAsync(die, 0, 0).value).then(() => {
  if (silently) process.exit();
  throw new Error('an error nobody caught');
});
