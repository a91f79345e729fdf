import { setTimeout as sleep } from 'node:timers/promises';
import { defineJob } from '../../src/index.ts';

const soon = { backoff: { kind: 'fixed', base: 20 }, jitter: 'none' } as const;

/** The jobs that test processes run. */
export const quick = defineJob<{ n: number }>({ name: 'quick', retry: soon, run: () => {} });

export const short = defineJob<{ ms: number }>({ name: 'short', retry: soon, run: ({ ms }) => sleep(ms) });

export const killer = defineJob<null>({
  name: 'killer',
  retry: soon,
  run: () => process.kill(process.pid, 'SIGKILL'),
});

/** Holds the event loop, as a paused or overloaded process would. */
export const alwaysFails = defineJob<null>({
  name: 'always-fails',
  retry: { ...soon, maxAttempts: 1_000_000 },
  run() {
    throw new Error('no');
  },
});

export const jobs = [quick, short, killer, alwaysFails];
