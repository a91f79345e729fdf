import { setTimeout as sleep } from 'node:timers/promises';
import type * as MulliganModule from '../../src/index.ts';

/** What the test may ask of a member of the fleet. */
export type Order = { readonly enqueue: number } | { readonly stop: true };

export interface Answer {
  readonly ready?: true;
  readonly ids?: readonly string[];
  readonly started?: string;
  readonly stopped?: true;
}

/**
 * A process of one version of Mulligan: `node member.ts ROOT URL NAME`. It works from the start, enqueues what it is
 * asked to, and stops when it is told to.
 */
const [root, url, name] = process.argv.slice(2) as [string, string, string];
const { defineJob, Mulligan } = (await import(`${root}/src/index.ts`)) as typeof MulliganModule;
const say = (answer: Answer): void => void process.send?.(answer);

const retry = { maxAttempts: 50, maxCrashes: 50, backoff: { kind: 'fixed', base: '20ms' } } as const;
const steady = defineJob({ name: 'steady', retry, run: () => sleep(5) });
const flaky = defineJob({
  name: 'flaky',
  retry,
  run(_input, { attempt }) {
    if (attempt < 3) throw new Error('not yet');
  },
});
/** Long enough to be running when its process is killed. */
const slow = defineJob({ name: 'slow', retry, run: (_input, { signal }) => sleep(400, undefined, { signal }) });

const mulligan = await Mulligan.open(url, { jobs: [steady, flaky, slow], log: () => {} });
mulligan.on('started', ({ name: job }) => say({ started: job }));
mulligan.work({ name, concurrency: 5, lease: '2s', poll: '100ms' });
process.on('message', (order: Order) => void ('enqueue' in order ? enqueue(order.enqueue) : stop()));
// Whatever happens to the test, its processes do not outlive it.
process.once('disconnect', () => process.exit());
say({ ready: true });

async function enqueue(count: number): Promise<void> {
  const enqueued = await Promise.all(
    [steady, flaky, slow].flatMap((job) => Array.from({ length: count }, () => mulligan.enqueue(job, null))),
  );
  say({ ids: enqueued.map(({ id }) => id) });
}

async function stop(): Promise<void> {
  await mulligan.close({ grace: '0s' });
  say({ stopped: true });
  process.disconnect();
}
