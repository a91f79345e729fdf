import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Duration, defineJob } from '../../src/index.ts';

const soon = { backoff: { kind: 'fixed', base: 20 }, jitter: 'none' } as const;

/** The jobs that test processes run. */
export const quick = defineJob<{ n: number }>({ name: 'quick', retry: soon, run: () => {} });

export const short = defineJob<{ ms: number }>({ name: 'short', retry: soon, run: ({ ms }) => sleep(ms) });

export const killer = defineJob<null>({
  name: 'killer',
  retry: soon,
  run: () => process.kill(process.pid, 'SIGKILL'),
});

export const alwaysFails = defineJob<null>({
  name: 'always-fails',
  retry: { ...soon, maxAttempts: 1_000_000 },
  run() {
    throw new Error('no');
  },
});

export const failsTwice = defineJob<null>({
  name: 'fails-twice',
  retry: { backoff: { kind: 'exponential', base: 10, max: 100 }, jitter: 'full' },
  run(_, { attempt }) {
    if (attempt <= 2) throw new Error('not yet');
  },
});

export const snoozes = defineJob<{ ms: number }>({
  name: 'snoozes',
  retry: soon,
  run({ ms }, context) {
    if (context.run === 1) context.snooze(ms);
  },
});

/**
 * Its first run holds the event loop, as heavy synchronous work does, until a file appears; it may ask for a longer
 * lease before. Any other run lasts until its process gets SIGUSR2.
 */
export const blocks = defineJob<{ until: string; extend: Duration | null }>({
  name: 'blocks',
  retry: soon,
  async run({ until, extend }, context) {
    if (context.run > 1) {
      await once(process, 'SIGUSR2');
      return;
    }
    if (extend !== null) await context.extend(extend);
    while (!existsSync(until));
  },
});

/** Ends well, and leaves something behind that goes wrong when the process gets SIGUSR2. */
export const leavesBehind = defineJob<{ what: 'a rejection' | 'a throw' }>({
  name: 'leaves-behind',
  retry: soon,
  run({ what }) {
    process.once('SIGUSR2', () => {
      if (what === 'a rejection') void Promise.reject(new Error('rejected too late'));
      else throw new Error('thrown too late');
    });
  },
});

/** Its first run lasts until it is told to stop. */
export const waitsForStop = defineJob<null>({
  name: 'waits-for-stop',
  retry: soon,
  async run(_, { run, signal }) {
    if (run === 1) await sleep(3_600_000, undefined, { signal });
  },
});

/** Its first run lasts until a file appears, whether it is told to stop or not. */
export const waitsForFile = defineJob<{ path: string }>({
  name: 'waits-for-file',
  retry: soon,
  async run({ path }, { run }) {
    while (run === 1 && !existsSync(path)) await sleep(20);
  },
});

/** Writes a row in the transaction that completes it, and takes its time about it: see `Effects`. */
export const writesOnce = defineJob<{ ms: number }>({
  name: 'writes-once',
  // Its connection may be ended under it; the books count every run, so no soft gate gives an attempt back.
  resource: false,
  retry: soon,
  run: ({ ms }, { transaction, job, run }) =>
    transaction(async (tx) => {
      await tx.query('INSERT INTO public.effects (job, run) VALUES ($1, $2)', [job.id, run]);
      await sleep(ms);
    }),
});

export const jobs = [
  quick,
  short,
  killer,
  alwaysFails,
  failsTwice,
  snoozes,
  blocks,
  leavesBehind,
  waitsForStop,
  waitsForFile,
  writesOnce,
];
