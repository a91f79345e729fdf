import { equal, type Random } from '../retry/jitter.ts';
import {
  PROBE_FIRST_MS,
  SUSPECT_FORGOTTEN_MS,
  SUSPECT_LONGEST_MS,
  SUSPECT_STREAK,
  SUSPECTS_KEPT,
} from './constants.ts';
import type { GateReport } from './evidence.ts';

/*
 * One bad worker (no DNS, wrong credentials) must not close a gate for all. A worker whose runs keep failing while others
 * see signs of life is a suspect: it starts no job behind this gate until its interval is over, then one at a time. The
 * interval doubles with every failure; one sign of life clears the worker.
 */

/** A worker that fails: its streak, and if it is a suspect, until when it waits. */
export interface FailingWorker {
  readonly worker: number;
  readonly streak: number;
  /** When its last failure was reported. */
  readonly at: number;
  /** 0 while it is no suspect. */
  readonly intervalMs: number;
  readonly until: number;
}

export interface WorkersChange {
  readonly workers: readonly FailingWorker[];
  /** True when this report made its worker a suspect, or kept it one. */
  readonly isSuspect: boolean;
}

/** `othersLive`: another worker has seen a sign of life within the window. */
export function judgeWorker(
  workers: readonly FailingWorker[],
  report: GateReport,
  othersLive: boolean,
  now: number,
  random: Random,
): WorkersChange {
  const known = workers.filter(({ at }) => now - at < SUSPECT_FORGOTTEN_MS);
  const others = known.filter(({ worker }) => worker !== report.worker);
  const before = known.find(({ worker }) => worker === report.worker);
  const isAnswered = report.alive + report.throttled > 0;
  const streak = isAnswered ? report.tail : (before?.streak ?? 0) + report.environment;
  if (streak === 0) return { workers: others, isSuspect: false };
  if (report.environment === 0) return { workers: known, isSuspect: false };

  const isSuspect = streak >= SUSPECT_STREAK && othersLive;
  const intervalMs = isSuspect ? nextInterval(isAnswered ? 0 : (before?.intervalMs ?? 0)) : 0;
  const until = isSuspect ? now + equal(intervalMs, random) : 0;
  const kept = others.slice(-(SUSPECTS_KEPT - 1));
  return { workers: [...kept, { worker: report.worker, streak, at: now, intervalMs, until }], isSuspect };
}

function nextInterval(intervalMs: number): number {
  return intervalMs === 0 ? PROBE_FIRST_MS : Math.min(SUSPECT_LONGEST_MS, intervalMs * 2);
}

/** How many jobs this worker may start as far as its own record goes, and from when on. */
export function workerAllowance(
  workers: readonly FailingWorker[],
  worker: number,
  now: number,
): { readonly starts: number; readonly from: number } {
  const suspect = workers.find((entry) => entry.worker === worker && entry.intervalMs > 0);
  if (suspect === undefined || now - suspect.at >= SUSPECT_FORGOTTEN_MS) {
    return { starts: Number.POSITIVE_INFINITY, from: now };
  }
  return suspect.until > now ? { starts: 0, from: suspect.until } : { starts: 1, from: now };
}
