import { closest, readOptions } from '../config.ts';
import { type AnyJobDefinition, definitionsByName } from '../definition.ts';
import { formatDuration } from '../duration.ts';
import { ConfigError } from '../errors.ts';
import { isTerminal } from '../job.ts';
import { Mulligan, type MulliganOptions, mulliganOptionNames } from '../mulligan.ts';
import type { Stats } from '../observe/stats.ts';
import { MemoryStore } from '../store/memory/store.ts';
import { type WorkOptions, workOptionNames } from '../worker/options.ts';
import type { Worker } from '../worker/worker.ts';
import { RealWork } from './real-work.ts';
import { VirtualClock } from './virtual-clock.ts';

/** Jobs that still wait after this much virtual time will hardly ever end. */
const LONGEST_DRAIN_MS = 10 * 365 * 24 * 3_600_000;
const STEP_WHILE_RUNNING_MS = 100;
/**
 * A due job that no worker has claimed by then will never be claimed: this store wakes its workers at once, and behind a gate
 * that is open a job is tried every 15 minutes at the latest. The rate of a limit may hold it for longer.
 */
const LONGEST_IDLE_MS = 20 * 60_000;
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
  /**
   * Runs everything to its end, retries and delays included, without waiting for any of it in real time. While a handler
   * waits for something real (a timer, a socket, a file, crypto or zlib, a thread that it starts), virtual time runs only as
   * fast as real time, so that timeouts fire as they would in production. Rejects when a job has no handler among `jobs`.
   */
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
  const definitions = definitionsByName(rest.jobs ?? [], 'Mulligan.open: jobs');
  const opened = { log: () => {}, ...rest, jobs: [...definitions.values()], clock };
  const mulligan = await Mulligan.open(new MemoryStore({ clock }), opened);
  const unknown = new UnknownJobs(mulligan, [...definitions.keys()]);
  const worker = mulligan.work({ poll: POLL, ...readOptions(work ?? {}, workOptionNames, 'work') });
  const real = new RealWork();
  // This event is emitted just before the handler is called.
  mulligan.on('started', () => {
    real.handlerStarts({ isOnly: worker.running <= 1 });
  });
  return {
    mulligan,
    clock,
    worker,
    drain: () => drain(mulligan, clock, real, unknown, longestIdleMs([...definitions.values()])),
    async [Symbol.asyncDispose]() {
      const closed = mulligan.close({ grace: 0 });
      // Stopping waits for timers of its own, which only run when time does.
      let isClosed = false;
      const done = (): void => {
        isClosed = true;
      };
      closed.then(done, done);
      while (!isClosed) await clock.advance(STEP_WHILE_RUNNING_MS);
      real[Symbol.dispose]();
      await closed;
    },
  };
}

async function drain(
  mulligan: Mulligan,
  clock: VirtualClock,
  real: RealWork,
  unknown: UnknownJobs,
  idleMs: number,
): Promise<void> {
  const startedAt = clock.monotonic();
  let lastChange = { at: startedAt, seen: '' };
  for (;;) {
    await clock.advance(0);
    await unknown.refuse();
    const { states, totals, queues } = await mulligan.stats();
    const seen = JSON.stringify([states, totals]);
    if (seen !== lastChange.seen || states.running > 0) lastChange = { at: clock.monotonic(), seen };
    const realMs = states.running > 0 ? await real.moment() : null;
    if (realMs !== null) {
      await clock.advance(realMs);
      continue;
    }
    const stepMs = await untilNextStep(mulligan, clock, states);
    if (stepMs === null) return;
    if (states.ready > 0 && clock.monotonic() - lastChange.at > idleMs) throw unclaimed(queues);
    await clock.advance(stepMs);
    if (clock.monotonic() - startedAt > LONGEST_DRAIN_MS) {
      throw new ConfigError(`drain: jobs still wait or run after ${formatDuration(LONGEST_DRAIN_MS)} of virtual time`);
    }
  }
}

function longestIdleMs(definitions: readonly AnyJobDefinition[]): number {
  const rates = definitions.flatMap(({ limits }) => limits.map(({ settings }) => settings.rate?.perMs ?? 0));
  return LONGEST_IDLE_MS + Math.max(0, ...rates);
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

/**
 * Jobs whose name has no handler here would wait, or be claimed and handed back, for days of virtual time. The test most
 * likely misspelt a name, or forgot a definition.
 */
class UnknownJobs {
  readonly #mulligan: Mulligan;
  readonly #known: readonly string[];
  readonly #ids: Set<string> = new Set();

  constructor(mulligan: Mulligan, known: readonly string[]) {
    this.#mulligan = mulligan;
    this.#known = known;
    mulligan.on('enqueued', ({ id, name }) => void (this.#known.includes(name) || this.#ids.add(id)));
  }

  async refuse(): Promise<void> {
    const counts = new Map<string, number>();
    for (const id of this.#ids) {
      const job = await this.#mulligan.jobs.get(id);
      if (job === null || isTerminal(job.state)) this.#ids.delete(id);
      else counts.set(job.name, (counts.get(job.name) ?? 0) + 1);
    }
    if (counts.size === 0) return;
    const list = [...counts]
      .map(([name, count]) => `${count} of ${JSON.stringify(name)}${this.#hint(name)}`)
      .join(', ');
    throw new ConfigError(`drain: expected a handler for every job, got ${list}. Add their definitions to jobs.`);
  }

  #hint(name: string): string {
    const meant = closest(name, this.#known);
    return meant === null ? '' : ` (did you mean ${JSON.stringify(meant)}?)`;
  }
}
