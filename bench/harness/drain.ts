import { chunks, wall } from './measure.ts';
import type { Kind, OpenPeer } from './peer.ts';
import type { Span } from './recorder.ts';
import { checkRuns, jobs, type Stage, settled } from './workload.ts';

export interface DrainOptions {
  readonly count: number;
  /** Ended after this long, done or not. */
  readonly capMs: number;
  readonly kind?: Kind;
  /** How often each job has to run. */
  readonly runs?: number;
  readonly processes?: number;
  readonly concurrency?: number;
  /** The queue within the stage. */
  readonly part?: string;
  /** Others wait in the queue as well, so the clock stops with the last handler, not when the store is empty. */
  readonly othersWait?: boolean;
  /** In a process of its own also where the queue lives in one; that process then enqueues the jobs as well. */
  readonly apart?: boolean;
  /** Called when all is enqueued, before the workers begin. */
  readonly prepared?: () => Promise<void>;
}

export interface Drained {
  /** Runs per second. */
  readonly perSecond: number;
  readonly capped: boolean;
  readonly rssMb: number;
  readonly loopMs: number;
  /** CPU time of the workers, all together. */
  readonly cpuMs: number;
  /** CPU time of the workers and of the server, if there is one, per run; null where the system does not tell. */
  readonly cpuPerRunUs: number | null;
  readonly spans: readonly Span[];
}

/** Enqueues jobs, has them worked off, and checks that each ran as often as it should. */
export async function drain(stage: Stage, queue: OpenPeer, options: DrainOptions): Promise<Drained> {
  const { count, capMs, kind = 'noop', runs = 1, processes = 1, concurrency, part, othersWait = false } = options;
  const brings = options.apart && stage.peer.inProcess;
  if (!brings) for (const some of chunks(jobs(count, kind), 1_000)) await queue.enqueueBulk(some);
  await queue.settleDown();
  const assignment = { jobs: count, ...(concurrency && { concurrency }), ...(brings && { brings: count }) };
  const crew = await stage.crew(processes, queue, assignment, part);
  await options.prepared?.();
  const serverBefore = await serverCpuMs(stage, queue);
  const startedAt = wall();
  await crew.go();
  const all = await crew.until(({ completed }) => completed >= count, startedAt + capMs);
  if (all && !othersWait) await settled(queue, wall() + 10_000);
  const tookMs = wall() - startedAt;
  const done = all ? count * runs : crew.progress().runs;
  if (!all)
    stage.note(`ended after ${capMs / 1_000} s with ${done} of ${count * runs} runs done; the rate is of those`);
  const serverAfter = await serverCpuMs(stage, queue);
  const reports = all ? await crew.stop() : await crew.dismiss();
  checkRuns(reports, count, runs, !all);
  const cpuMs = reports.reduce((sum, report) => sum + report.cpuMs, 0);
  const serverMs = serverBefore === null || serverAfter === null ? null : serverAfter - serverBefore;
  return {
    perSecond: (done * 1_000) / tookMs,
    capped: !all,
    rssMb: Math.max(...reports.map(({ peakRssMb }) => peakRssMb)),
    loopMs: Math.max(...reports.map(({ loopDelayP99Ms }) => loopDelayP99Ms)),
    cpuMs,
    cpuPerRunUs: serverMs === null ? null : ((cpuMs + serverMs) * 1_000) / done,
    spans: reports.flatMap(({ spans }) => spans),
  };
}

/** 0 where the queue has no server of its own; null where that is not known. */
async function serverCpuMs(stage: Stage, queue: OpenPeer): Promise<number | null> {
  if (stage.peer.engine === 'sqlite' || stage.peer.engine === 'memory') return 0;
  return (await queue.usage?.())?.cpuMs ?? null;
}
