import { equal, type Random } from '../retry/jitter.ts';
import {
  PROBE_AGAIN_MS,
  PROBE_FIRST_MS,
  PROBE_GROWTH,
  PROBE_LONGEST_KEYED_MS,
  PROBE_LONGEST_KEYED_SHARE,
  PROBE_LONGEST_MS,
  PROBE_OTHERS_FIRST_MS,
  PROBE_SLOT_MS,
  PROBES_ALIVE,
  PROBES_REMEMBERED,
} from './constants.ts';
import type { GateReport } from './evidence.ts';
import { countJobs, isWithin, type JobBits, jobBit, join, noJobs, overlaps } from './sets.ts';

/*
 * An open gate starts one ordinary job at a time, as a probe.
 *
 * The first goes out after 2 s (equal jitter); each failure makes the wait half as long again, up to `longestInterval`. A sign of life lets the next one start at
 * once, and the third in a row starts the ramp. The slot is free again when the probe has reported, or after 35 s: a probe
 * whose worker died cannot keep the gate shut, nor can one that runs for an hour. A probe that was handed back without a call
 * frees the slot at once and proves nothing: the next one starts at once, and the wait stays as long as it was.
 *
 * A job that always fails by itself must not keep the gate shut either: jobs that have not failed as a probe are drawn
 * first, and a job that fails a second time after others have lived counts neither for nor against the dependency.
 */

export interface Probes {
  /** When the next probe may start. */
  readonly at: number;
  readonly intervalMs: number;
  /** Until when the probe that runs now keeps its slot; 0 when none runs. */
  readonly slotUntil: number;
  /** Probes alive in a row. */
  readonly alive: number;
  /** Jobs that failed as a probe since the gate opened. */
  readonly failed: JobBits;
  /** The one of them that failed last. */
  readonly failedLast: JobBits;
  /** The worker whose probe failed last: another worker has the next turn, if there is one. */
  readonly failedWorker: number;
}

export const noProbes: Probes = {
  at: 0,
  intervalMs: PROBE_FIRST_MS,
  slotUntil: 0,
  alive: 0,
  failed: noJobs,
  failedLast: noJobs,
  failedWorker: 0,
};

export function firstProbe(now: number, random: Random): Probes {
  return { ...noProbes, at: now + equal(PROBE_FIRST_MS, random) };
}

/** Its worker could not run it, or must not. No call was made, so nothing is known, and the next probe starts at once. */
export function isHandedBack({ unstarted, none, environment, alive, throttled }: GateReport): boolean {
  return unstarted > 0 && unstarted === none && environment + alive + throttled === 0;
}

/** When `worker` may start the next probe. */
export function probeAt(probes: Probes, worker: number | null): number {
  const at = Math.max(probes.at, probes.slotUntil);
  // The same worker again only when no other has taken its turn: it may be the one that is broken.
  return worker !== null && worker === probes.failedWorker ? at + PROBE_OTHERS_FIRST_MS : at;
}

export function startProbe(probes: Probes, now: number): Probes {
  return { ...probes, slotUntil: now + PROBE_SLOT_MS };
}

/**
 * The probes of all keys of a parent keep to a rate, and this one found no room: it waits as if it had failed. If it asked
 * again at once, thousands of keys would keep claims busy with asking.
 */
export function postpone(probes: Probes, longestMs: number, now: number, random: Random): Probes {
  const intervalMs = Math.min(longestMs, probes.intervalMs * PROBE_GROWTH);
  return { ...probes, intervalMs, at: now + equal(intervalMs, random) };
}

export type ProbeVerdict = 'alive' | 'recovered' | 'down' | 'job' | 'none';

/** What a report on probes proves, and the probes after it. `job`: the failure is the job's own and counts against it. */
export function judgeProbe(
  probes: Probes,
  report: GateReport,
  longestMs: number,
  now: number,
  random: Random,
): { readonly verdict: ProbeVerdict; readonly probes: Probes } {
  const freed = { ...probes, slotUntil: 0 };
  if (report.environment > 0) {
    const failedLast = report.jobs;
    if (isOwnFault(probes, report))
      return { verdict: 'job', probes: { ...freed, at: now + PROBE_AGAIN_MS, failedLast } };
    const intervalMs = Math.min(longestMs, probes.intervalMs * PROBE_GROWTH);
    const at = now + equal(intervalMs, random);
    const failed = remember(probes.failed, report.jobs);
    const failedWorker = report.worker;
    return { verdict: 'down', probes: { at, intervalMs, slotUntil: 0, alive: 0, failed, failedLast, failedWorker } };
  }
  const answered = report.alive + report.throttled;
  if (answered === 0) {
    const againMs = isHandedBack(report) ? 0 : PROBE_AGAIN_MS;
    return { verdict: 'none', probes: { ...freed, at: now + againMs, failedWorker: 0 } };
  }
  const alive = probes.alive + answered;
  const failedWorker = report.worker === probes.failedWorker ? 0 : probes.failedWorker;
  const next = { ...freed, at: now, intervalMs: PROBE_FIRST_MS, alive, failedWorker };
  return { verdict: alive >= PROBES_ALIVE ? 'recovered' : 'alive', probes: next };
}

/** A job that failed as a probe before, and fails again after others have lived. */
export function isOwnFault(probes: Probes, { jobs }: Pick<GateReport, 'jobs'>): boolean {
  return probes.alive > 0 && isWithin(jobs, probes.failed);
}

/** Of too many remembered jobs, one in four strangers would look like one of them. */
function remember(failed: JobBits, jobs: JobBits): JobBits {
  return countJobs(failed) >= PROBES_REMEMBERED ? jobs : join(failed, jobs);
}

/** Of a keyed gate it grows with the outage: strangers choose the keys, so there may be 100,000 dead ones. */
export function longestInterval(
  { keyed, downSince }: { readonly keyed: boolean; readonly downSince: number },
  now: number,
): number {
  if (!keyed) return PROBE_LONGEST_MS;
  const grown = Math.max(PROBE_LONGEST_MS, (now - downSince) * PROBE_LONGEST_KEYED_SHARE);
  return Math.min(PROBE_LONGEST_KEYED_MS, grown);
}

/** Which of the first due jobs becomes the probe: any, but first among those that have not failed as one, and never the last that has while another is due. */
export function pickProbe({ failed, failedLast }: Probes, jobIds: readonly string[], random: Random): string | null {
  const notIn = (jobs: JobBits): string[] => jobIds.filter((id) => !overlaps(jobBit(id), jobs));
  const from = [notIn(failed), notIn(failedLast), jobIds].find((ids) => ids.length > 0) ?? [];
  return from[Math.floor(random() * from.length)] ?? null;
}
