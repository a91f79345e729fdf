import type { Clock } from './clock.ts';
import { checkInteger, readOptions } from './config.ts';
import { type Duration, parseDuration } from './duration.ts';
import type { FinishedEvent } from './observe/events.ts';
import type { Store } from './store/store.ts';
import { withBudget } from './worker/budget.ts';
import { type WorkOptions, workOptionNames } from './worker/options.ts';
import type { Worker } from './worker/worker.ts';

const DEFAULT_DRAIN = '1m';

export interface DrainOptions extends WorkOptions {
  /** No job starts later than this from now. Runs that go on then get 10 s more. Default 1 m. */
  readonly maxMs?: Duration;
  /** No more jobs than this start. */
  readonly maxJobs?: number;
}

/** How many runs ended how. */
export interface DrainResult {
  readonly completed: number;
  readonly retrying: number;
  readonly dead: number;
  /** Cancelled, snoozed or handed back. */
  readonly others: number;
  /** True when nothing that is due is left, as far as this worker may see; false when time or jobs ran out first. */
  readonly isDone: boolean;
}

/** Events of runs that ended, and where each is counted. */
const counted = {
  completed: 'completed',
  retrying: 'retrying',
  dead: 'dead',
  cancelled: 'others',
  released: 'others',
} as const;

export interface DrainParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly work: (options: WorkOptions, store: Store) => Worker;
  readonly on: (name: keyof typeof counted, listener: (event: FinishedEvent) => void) => () => void;
}

/** A worker that stops when nothing is due, when its time is over, or when it has had its jobs. */
export async function drain(options: DrainOptions, { store, clock, work, on }: DrainParts): Promise<DrainResult> {
  const names = [...workOptionNames, 'maxMs', 'maxJobs'];
  const { maxMs = DEFAULT_DRAIN, maxJobs, ...rest } = readOptions(options, names, 'drain');
  const longestMs = parseDuration(maxMs, 'drain: maxMs');
  const most = maxJobs === undefined ? Number.POSITIVE_INFINITY : checkInteger(maxJobs, 'drain: maxJobs', { min: 1 });
  const budget = withBudget(store, most);
  const worker = work(rest, budget.store);
  const ended = { completed: 0, retrying: 0, dead: 0, others: 0 };
  const stopCounting = (Object.keys(counted) as (keyof typeof counted)[]).map((name) =>
    on(name, (event) => {
      if (event.worker === worker.id) ended[counted[name]]++;
    }),
  );
  const isInTime = await idleWithin(worker, longestMs, clock);
  await worker.stop();
  for (const stop of stopCounting) stop();
  return { ...ended, isDone: isInTime && !budget.isSpent() };
}

function idleWithin(worker: Worker, longestMs: number, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.after(longestMs, () => resolve(false));
    void worker.whenIdle().then(() => {
      timer.cancel();
      resolve(true);
    });
  });
}
