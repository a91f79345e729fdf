import type { Crew } from '../harness/crew.ts';
import { chunks, percentile, wall } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import type { Report } from '../harness/recorder.ts';
import { arrive, CONCURRENCY, jobs, type Stage, type Workload } from '../harness/workload.ts';

const PER_SECOND = 50;

export const w5: Workload = {
  id: 'W5',
  title: 'Starvation',
  what:
    'A storm of jobs fails again and again, 50 ms after each failure, in one worker process with concurrency ' +
    `${CONCURRENCY}. Once each of them has failed, fresh jobs arrive, ${PER_SECOND} per second. How long the fresh ones ` +
    'wait for their start, with the storm and without it.',
  metrics: [
    { key: 'calm99', title: 'without the storm, p99', unit: 'ms', better: 'lower' },
    { key: 'storm50', title: 'with the storm, p50', unit: 'ms', better: 'lower' },
    { key: 'storm99', title: 'with the storm, p99', unit: 'ms', better: 'lower' },
  ],
  async run(stage) {
    const queue = await stage.open();
    const fresh = stage.size(500, 50);
    const storm = stage.size(20_000, 1_000);

    const calm = await stage.crew(1, queue, { jobs: fresh });
    await calm.go();
    stage.set('calm99', percentile(await waits(stage, queue, calm, fresh), 0.99));

    await queue.reset();
    const crew = await startStorm(stage, queue, storm, fresh);
    if (crew === null) return;
    const before = { at: wall(), ...crew.progress() };
    const waited = await waits(stage, queue, crew, fresh);
    const stormRuns = crew.progress().runs - before.runs - fresh;
    stage.note(`the storm ran ${rough((1_000 * stormRuns) / (wall() - before.at))} times a second meanwhile`);
    stage.set('storm50', percentile(waited, 0.5));
    stage.set('storm99', percentile(waited, 0.99));
    stage.note(`backoff of the storm: ${stage.peer.backoff.fifty}`);
  },
};

/**
 * A worker at which `storm` jobs fail again and again, each of which has failed once by now; they are numbered after the
 * `others`, which come later. Null, with a note, when the queue never got that far.
 */
export async function startStorm(stage: Stage, queue: OpenPeer, storm: number, others: number): Promise<Crew | null> {
  for (const part of chunks(jobs(storm, 'storm', others), 1_000)) await queue.enqueueBulk(part);
  await queue.settleDown();
  const crew = await stage.crew(1, queue, { jobs: others + storm });
  await crew.go();
  const capMs = stage.size(120_000, 2_000);
  if (await crew.until(({ failedOnce }) => failedOnce >= storm, wall() + capMs)) return crew;
  const { failedOnce } = crew.progress();
  stage.note(`the storm did not begin: after ${capMs / 1_000} s, ${failedOnce} of ${storm} jobs had failed once`);
  await crew.dismiss();
  return null;
}

async function waits(stage: Stage, queue: OpenPeer, crew: Crew, fresh: number): Promise<number[]> {
  const sent = await arrive(queue, fresh, PER_SECOND);
  await crew.until(({ timed }) => timed >= fresh, wall() + stage.size(60_000, 2_000));
  const endedAt = wall();
  return waitsOf(stage, sent, await crew.dismiss(), endedAt);
}

/** Of jobs that were sent at these times, numbered from 0; those that never started have waited until `endedAt`. */
export function waitsOf(stage: Stage, sent: readonly number[], reports: readonly Report[], endedAt: number): number[] {
  const started = reports.flatMap((report) => report.waits);
  const left = sent.filter((_, n) => reports.every((report) => report.started[n] === 0));
  for (const report of reports) {
    for (let n = 0; n < sent.length; n++) {
      const runs = report.started[n] as number;
      if (runs > 1) throw new Error(`wrong: fresh job ${n} ran ${runs} times`);
    }
  }
  if (left.length > 0)
    stage.note(
      `${left.length} of ${sent.length} fresh jobs had not started at the end; they count with their wait so far`,
    );
  return [...started, ...left.map((sentAt) => endedAt - sentAt)];
}

/** One digit: it is about the order of magnitude. */
function rough(rate: number): string {
  return Number(Math.max(0, rate).toPrecision(1)).toLocaleString('en-US');
}
