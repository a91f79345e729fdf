import { systemClock } from '../../clock.ts';
import type { Job } from '../../job.ts';
import { Mulligan } from '../../mulligan.ts';
import { printable } from '../../printable.ts';
import { Failure } from '../failure.ts';
import { demoJobs, jobTypes, SAFE_QUEUE } from './jobs.ts';
import { pause } from './pause.ts';
import { readSummary, type Summary } from './summary.ts';
import type { View } from './view.ts';
import { Watch } from './watch.ts';
import { WorkerProcess } from './worker-process.ts';

const READ_EVERY_MS = 100;
/** It takes about ten seconds; on a machine that needs longer than this, something is wrong. */
const LONGEST_MS = 50_000;

export interface DemoParts {
  /** Called when the dashboard is there, and before the first job is. */
  readonly begin: (dashboard: string) => View;
  /** Called when every job has ended; the dashboard stays until it resolves. */
  readonly finish: (summary: Summary, dashboard: string) => Promise<void>;
  readonly interrupted: AbortSignal;
}

/** Enqueues all jobs, lets two processes work on them, and watches until every job has ended. Null when interrupted. */
export async function runDemo(url: string, { begin, finish, interrupted }: DemoParts): Promise<Summary | null> {
  const mulligan = await Mulligan.open(url, {
    jobs: demoJobs,
    log: ({ level, message }) => (level === 'debug' ? undefined : view?.event(printable(`${level}: ${message}`))),
  });
  let view: View | null = null;
  const { serve } = await import('../../server/node.ts');
  const server = await serve(mulligan, { port: 0, chores: false });
  view = begin(server.url);
  const broken = Promise.withResolvers<never>();
  const workerProcess = new WorkerProcess(url, (what) => view?.event(what), broken.reject);
  try {
    await enqueueAll(mulligan);
    workerProcess.start();
    mulligan.work({ queues: [SAFE_QUEUE], concurrency: 6, lease: '3s', poll: '100ms', name: 'demo' });
    const jobs = await Promise.race([watch(mulligan, view, interrupted), broken.promise]);
    if (jobs === null) return null;
    const summary = await readSummary(mulligan, jobs);
    view.end();
    await workerProcess.stop();
    await finish(summary, server.url);
    return summary;
  } finally {
    view.end();
    await Promise.all([workerProcess.stop(), server.close()]);
    await mulligan.close({ grace: interrupted.aborted ? 0 : '1s' });
  }
}

async function enqueueAll(mulligan: Mulligan): Promise<void> {
  for (const { definition, count } of jobTypes) {
    const inputs = Array.from({ length: count }, (_, index) => ({ number: index + 1 }));
    await mulligan.enqueueMany(
      definition,
      inputs.map((input) => ({ input })),
    );
  }
}

async function watch(mulligan: Mulligan, view: View, interrupted: AbortSignal): Promise<readonly Job[] | null> {
  const watching = new Watch(mulligan);
  const giveUpAt = systemClock.monotonic() + LONGEST_MS;
  for (;;) {
    const snapshot = await watching.snapshot();
    view.show(snapshot);
    if (snapshot.done) return snapshot.jobs;
    if (systemClock.monotonic() > giveUpAt) throw tooSlow(snapshot.jobs);
    await pause(READ_EVERY_MS, interrupted);
    if (interrupted.aborted) return null;
  }
}

function tooSlow(jobs: readonly Job[]): Failure {
  const waiting = jobs.filter(({ finishedAt }) => finishedAt === null).map(({ name, state }) => `${name} (${state})`);
  return new Failure('NOT_DONE', `the demo did not end in ${LONGEST_MS / 1_000} s; still open: ${waiting.join(', ')}.`);
}
