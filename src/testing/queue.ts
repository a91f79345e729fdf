import { readOptions } from '../config.ts';
import type { AnyJobDefinition } from '../definition.ts';
import { formatDuration } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import { Mulligan, type MulliganOptions, mulliganOptionNames } from '../mulligan.ts';
import type { Stats } from '../observe/stats.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { type WorkOptions, workOptionNames } from '../worker/options.ts';
import type { Worker } from '../worker/worker.ts';
import { VirtualClock } from './virtual-clock.ts';

/** Jobs that still wait after this much virtual time will hardly ever end. */
const LONGEST_DRAIN_MS = 10 * 365 * 24 * 3_600_000;
const STEP_WHILE_RUNNING_MS = 100;
/** A due job that no worker has claimed by then will never be claimed: this store wakes its workers at once. */
const LONGEST_IDLE_MS = 10 * 60_000;
/** Rare, because the store wakes its workers: a drain over days would otherwise poll a hundred thousand times. */
const POLL = '1h';

export interface TestQueueOptions extends Omit<MulliganOptions, 'jobs' | 'clock'> {
  readonly jobs: readonly AnyJobDefinition[];
  readonly work?: WorkOptions;
  /** The same seed gives the same jitter and ids. */
  readonly seed?: number;
}

const optionNames: readonly string[] = [...mulliganOptionNames.filter((name) => name !== 'clock'), 'work', 'seed'];

export interface TestQueue extends AsyncDisposable {
  readonly mulligan: Mulligan;
  readonly clock: VirtualClock;
  readonly worker: Worker;
  /** Runs everything to its end, retries and delays included, without waiting for any of it in real time. */
  drain(): Promise<void>;
}

/**
 * A queue in memory on a clock that stands still, with one worker: for unit tests of jobs and their retries.
 *
 * @example
 * await using queue = await testQueue({ jobs: [sendEmail] });
 * const { id } = await queue.mulligan.enqueue(sendEmail, { to: 'a@example.com' });
 * await queue.drain();
 * assert.equal((await queue.mulligan.jobs.get(id))?.state, 'completed');
 */
export async function testQueue(options: TestQueueOptions): Promise<TestQueue> {
  const { work, seed, ...rest } = readOptions(options, optionNames, 'testQueue');
  const clock = new VirtualClock(seed === undefined ? {} : { seed });
  const mulligan = await Mulligan.open(new MemoryStore({ clock }), { log: () => {}, ...rest, clock });
  const worker = mulligan.work({ poll: POLL, ...readOptions(work ?? {}, workOptionNames, 'work') });
  return {
    mulligan,
    clock,
    worker,
    drain: () => drain(mulligan, clock),
    async [Symbol.asyncDispose]() {
      const closed = mulligan.close({ grace: 0 });
      // Stopping waits for timers of its own, which only run when time does.
      let isClosed = false;
      const done = (): void => {
        isClosed = true;
      };
      closed.then(done, done);
      while (!isClosed) await clock.advance(STEP_WHILE_RUNNING_MS);
      await closed;
    },
  };
}

async function drain(mulligan: Mulligan, clock: VirtualClock): Promise<void> {
  const startedAt = clock.monotonic();
  let lastChange = { at: startedAt, seen: '' };
  for (;;) {
    await clock.advance(0);
    const { states, totals, queues } = await mulligan.stats();
    const stepMs = await untilNextStep(mulligan, clock, states);
    if (stepMs === null) return;
    const seen = JSON.stringify([states, totals]);
    if (seen !== lastChange.seen || states.running > 0) lastChange = { at: clock.monotonic(), seen };
    if (states.ready > 0 && clock.monotonic() - lastChange.at > LONGEST_IDLE_MS) throw unclaimed(queues);
    await clock.advance(stepMs);
    if (clock.monotonic() - startedAt > LONGEST_DRAIN_MS) {
      throw new ConfigError(`drain: jobs still wait or run after ${formatDuration(LONGEST_DRAIN_MS)} of virtual time`);
    }
  }
}

function unclaimed(queues: Stats['queues']): ConfigError {
  const waiting = Object.entries(queues).filter(([, { states }]) => states.ready > 0);
  const list = waiting.map(([queue, { states }]) => `${states.ready} of ${JSON.stringify(queue)}`).join(', ');
  return new ConfigError(
    `drain: expected a worker for all jobs that are due, but no worker claims ${list}. Is the queue paused, or missing in work.queues?`,
  );
}

/** How far to move on; null when all jobs have ended. */
async function untilNextStep(mulligan: Mulligan, clock: VirtualClock, states: Stats['states']): Promise<number | null> {
  if (states.ready + states.running > 0) return STEP_WHILE_RUNNING_MS;
  if (states.scheduled + states.retrying === 0) return null;
  const later = await Promise.all(
    (['scheduled', 'retrying'] as const).map((state) => mulligan.jobs.list({ state, limit: 10_000 })),
  );
  const nextDueAt = Math.min(...later.flat().map((job) => job.dueAt));
  return Math.max(1, nextDueAt - clock.now());
}
