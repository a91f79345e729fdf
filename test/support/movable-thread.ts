import { workerData } from 'node:worker_threads';
import { systemClock } from '../../src/clock.ts';
import { serve } from '../../src/store/sqlite/serve.ts';

/** The thread of the conformance tests: a clock that the test shifts. */
const { shift } = workerData as { shift: Float64Array };

serve({ ...systemClock, now: () => systemClock.now() + (shift[0] as number) });
