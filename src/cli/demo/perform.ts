import { systemClock } from '../../clock.ts';
import type { Job } from '../../job.ts';
import { Mulligan } from '../../mulligan.ts';
import { Failure } from '../failure.ts';
import { printable } from '../printable.ts';
import { Crew } from './crew.ts';
import { type Ending, readEnding } from './finale.ts';
import { demoJobs, roles, SAFE_QUEUE } from './jobs.ts';
import type { View } from './view.ts';
import { Watch } from './watch.ts';

const LOOK_EVERY_MS = 100;
/** It takes about ten seconds; on a machine that needs longer than this, something is wrong. */
const LONGEST_MS = 50_000;

/** Enqueues all jobs, lets two processes work on them, and watches until every job has ended. Null when interrupted. */
export async function perform(url: string, view: View, interrupted: AbortSignal): Promise<Ending | null> {
  const mulligan = await Mulligan.open(url, {
    jobs: demoJobs,
    log: ({ level, message }) => (level === 'debug' ? undefined : view.tell(printable(`${level}: ${message}`))),
  });
  const broken = Promise.withResolvers<never>();
  const crew = new Crew(url, (what) => view.tell(what), broken.reject);
  try {
    await enqueueAll(mulligan);
    crew.start();
    mulligan.work({ queues: [SAFE_QUEUE], concurrency: 6, lease: '3s', poll: '100ms', name: 'demo' });
    const jobs = await Promise.race([watch(mulligan, view, interrupted), broken.promise]);
    return jobs === null ? null : await readEnding(mulligan, jobs);
  } finally {
    view.end();
    await Promise.all([crew.stop(), mulligan.close({ grace: interrupted.aborted ? 0 : '1s' })]);
  }
}

async function enqueueAll(mulligan: Mulligan): Promise<void> {
  for (const { definition, count } of roles) {
    const inputs = Array.from({ length: count }, (_, index) => ({ number: index + 1 }));
    await mulligan.enqueueMany(definition, inputs);
  }
}

async function watch(mulligan: Mulligan, view: View, interrupted: AbortSignal): Promise<readonly Job[] | null> {
  const watching = new Watch(mulligan);
  const giveUpAt = systemClock.monotonic() + LONGEST_MS;
  for (;;) {
    const look = await watching.look();
    view.show(look);
    if (look.done) return look.jobs;
    if (systemClock.monotonic() > giveUpAt) throw tooSlow(look.jobs);
    await pause(LOOK_EVERY_MS, interrupted);
    if (interrupted.aborted) return null;
  }
}

function tooSlow(jobs: readonly Job[]): Failure {
  const waiting = jobs.filter(({ finishedAt }) => finishedAt === null).map(({ name, state }) => `${name} (${state})`);
  return new Failure('NOT_DONE', `the demo did not end in ${LONGEST_MS / 1_000} s; still open: ${waiting.join(', ')}.`);
}

function pause(ms: number, interrupted: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = (): void => {
      timer.cancel();
      interrupted.removeEventListener('abort', wake);
      resolve();
    };
    const timer = systemClock.after(ms, wake);
    interrupted.addEventListener('abort', wake);
  });
}
