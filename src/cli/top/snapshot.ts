import type { Clock } from '../../clock.ts';
import type { LimitSummary } from '../../limits.ts';
import type { Mulligan } from '../../mulligan.ts';
import type { GateInfo } from '../../observe/gate-info.ts';
import type { RetryStats, Stats } from '../../observe/stats.ts';
import type { ErrorGroup, RegisteredWorker } from '../../store/store.ts';
import { isNotable } from '../gate-facts.ts';

/*
 * What `mulligan top` reads, once per refresh: counters, small tables, and the number of waiting jobs, which stores count
 * by index. Waiting jobs are shown by state and not by lane, and the oldest is not shown: no verb of a store returns
 * either, and finding them would mean to read the jobs themselves.
 */

const MOST_GATES = 50;
const MOST_ERRORS = 100;
const ERRORS_SINCE = '1h';
/** Workers that are missing come first. */
const order = { lost: 0, silent: 1, alive: 2 } as const;

export interface TopQueue {
  readonly queue: string;
  readonly paused: boolean;
  readonly ready: number;
  readonly scheduled: number;
  readonly retrying: number;
  readonly running: number;
  readonly dead: number;
  /** Since the reading before; null in the first one. */
  readonly completedPerSecond: number | null;
  readonly failedPerSecond: number | null;
}

export interface TopSnapshot {
  /** When it was read, in ms since the epoch. */
  readonly at: number;
  readonly queues: readonly TopQueue[];
  /** Those that are not closed, are pinned or held, or let few retries start. */
  readonly gates: readonly GateInfo[];
  /** Those with waiting jobs, the most first. */
  readonly limits: readonly LimitSummary[];
  /** Error groups of the last hour, the latest first. */
  readonly errors: readonly ErrorGroup[];
  /** Those that are lost first. */
  readonly workers: readonly RegisteredWorker[];
}

/** Reads snapshots one after the other; each compares its totals with those of the one before. */
export class TopReader {
  readonly #mulligan: Mulligan;
  readonly #clock: Clock;
  #before: { readonly stats: Stats; readonly at: number } | null = null;

  constructor(mulligan: Mulligan, clock: Clock) {
    this.#mulligan = mulligan;
    this.#clock = clock;
  }

  async read(): Promise<TopSnapshot> {
    const { stats, known, gates, limits, errors, workers } = await this.#readAll();
    const before = this.#before;
    const at = this.#clock.monotonic();
    this.#before = { stats, at };
    const elapsedMs = before === null ? 0 : at - before.at;
    const paused = new Set(known.flatMap((one) => (one.paused ? [one.queue] : [])));
    const names = [...new Set([...known.map(({ queue }) => queue), ...Object.keys(stats.queues)])].sort();
    return {
      at: this.#clock.now(),
      queues: names.map((queue) => ({
        queue,
        paused: paused.has(queue),
        ...statesOf(stats.queues[queue]),
        ...ratesOf(stats.queues[queue], before?.stats.queues[queue], elapsedMs),
      })),
      gates: gates.filter(isNotable),
      limits: limits.filter(({ waiting }) => waiting > 0).sort((a, b) => b.waiting - a.waiting),
      errors: [...errors].sort((a, b) => b.lastSeenAt - a.lastSeenAt),
      workers: [...workers].sort((a, b) => order[a.state] - order[b.state]),
    };
  }

  async #readAll() {
    const mulligan = this.#mulligan;
    const [stats, known, gates, limits, errors, workers] = await Promise.all([
      mulligan.stats(),
      mulligan.queues.list(),
      mulligan.gates.list({ limit: MOST_GATES }),
      mulligan.limits.list(),
      mulligan.errors.list({ limit: MOST_ERRORS, since: ERRORS_SINCE }),
      mulligan.workers.list(),
    ]);
    return { stats, known, gates, limits, errors, workers };
  }
}

type QueueStates = Pick<TopQueue, 'ready' | 'scheduled' | 'retrying' | 'running' | 'dead'>;

function statesOf(stats: RetryStats | undefined): QueueStates {
  const { ready = 0, scheduled = 0, retrying = 0, running = 0, dead = 0 } = stats?.states ?? {};
  return { ready, scheduled, retrying, running, dead };
}

function ratesOf(
  stats: RetryStats | undefined,
  before: RetryStats | undefined,
  elapsedMs: number,
): Pick<TopQueue, 'completedPerSecond' | 'failedPerSecond'> {
  if (elapsedMs <= 0) return { completedPerSecond: null, failedPerSecond: null };
  const rate = (count: (of: RetryStats | undefined) => number): number =>
    // Not below 0: the database may have been replaced meanwhile.
    Math.max(0, ((count(stats) - count(before)) * 1_000) / elapsedMs);
  return { completedPerSecond: rate(completed), failedPerSecond: rate(failed) };
}

function completed(stats: RetryStats | undefined): number {
  return stats?.totals.runs.completed ?? 0;
}

/** A failure whose attempt a gate gave back is one too. */
function failed(stats: RetryStats | undefined): number {
  const runs = stats?.totals.runs;
  return runs === undefined ? 0 : runs.failed + runs.crashed + runs.deferred;
}
