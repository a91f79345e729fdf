import { systemClock } from '../../src/clock.ts';
import { type Duration, Mulligan, type MulliganOptions } from '../../src/index.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { WorkOptions } from '../../src/worker/options.ts';
import { jobs } from './jobs.ts';

/** What the test may ask of a worker process. */
export type Order = { readonly stop: { readonly grace: Duration } } | { readonly shiftClockMs: number };

/**
 * A real worker process: `node worker-process.ts URL OPTIONS [movable-clock] [tells-starts]`. It says `ready`, works
 * until SIGTERM or the order to stop, then says `stopped`.
 */
const [url, options, ...traits] = process.argv.slice(2) as [string, string, ...string[]];
const log = (entry: object): unknown => process.send?.({ log: entry });
// These jobs are to be retried soon, at times that tests know.
const settings: MulliganOptions = { jobs, log, silence: ['no-jitter', 'short-window'] };
const shift = new Float64Array(new SharedArrayBuffer(8));

const mulligan = await (traits.includes('movable-clock') ? openWithMovableClock() : Mulligan.open(url, settings));
mulligan.on('lease-lost', ({ id, run }) => process.send?.({ leaseLost: { id, run } }));
mulligan.on('completed', ({ id, run }) => process.send?.({ completed: { id, run } }));
if (traits.includes('tells-starts')) {
  mulligan.on('started', ({ id, run }) => process.send?.({ started: { id, run } }));
}
mulligan.work(JSON.parse(options) as WorkOptions);
process.once('SIGTERM', () => stop('10s'));
process.on('message', (order: Order) => {
  if ('stop' in order) stop(order.stop.grace);
  else shift[0] = order.shiftClockMs;
});
// Whatever happens to the test, its workers do not outlive it.
process.once('disconnect', () => process.exit());
process.send?.('ready');

function stop(grace: Duration): void {
  mulligan.close({ grace }).then(() => {
    process.send?.('stopped');
    process.disconnect();
  });
}

/** Both threads of the store and the worker itself see the same shifted time, as they would on a clock that was set. */
async function openWithMovableClock(): Promise<Mulligan> {
  const entry = { module: new URL('../support/movable-thread.ts', import.meta.url), data: { shift } };
  const store = await SqliteStore.open({ path: url.replace(/^sqlite:/, ''), entry });
  const clock = { ...systemClock, now: () => systemClock.now() + (shift[0] as number) };
  return Mulligan.open(store, { ...settings, clock });
}
