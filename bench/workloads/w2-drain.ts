import { chunks, wall } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import { CONCURRENCY, checkRuns, jobs, type Stage, settled, type Workload } from '../harness/workload.ts';

export const w2: Workload = {
  id: 'W2',
  title: 'Drain',
  what:
    `Jobs that do nothing wait; one and then two worker processes with concurrency ${CONCURRENCY} each work them off. ` +
    'The clock runs from the word to start until the store says that none waits or runs. ' +
    'Checked: each job ran exactly once.',
  metrics: [
    { key: 'one', title: 'one process', unit: '/s', better: 'higher' },
    { key: 'two', title: 'two processes', unit: '/s', better: 'higher' },
    { key: 'rss', title: 'peak memory of the process', unit: 'MB', better: 'lower' },
    { key: 'loop', title: 'event-loop delay, p99', unit: 'ms', better: 'lower' },
  ],
  async run(stage) {
    const queue = await stage.open();
    const one = await drain(stage, queue, 1);
    stage.set('one', one.perSecond);
    stage.set('rss', one.rssMb);
    stage.set('loop', one.loopMs);
    if (stage.peer.inProcess) return;
    await queue.reset();
    stage.set('two', (await drain(stage, queue, 2)).perSecond);
  },
};

async function drain(
  stage: Stage,
  queue: OpenPeer,
  processes: number,
): Promise<{ perSecond: number; rssMb: number; loopMs: number }> {
  const count = stage.size(50_000, 3_000);
  const capMs = stage.size(60_000, 2_000);
  for (const part of chunks(jobs(count), 1_000)) await queue.enqueueBulk(part);
  await queue.settleDown();
  const crew = await stage.crew(processes, queue, { jobs: count });
  const startedAt = wall();
  await crew.go();
  const all = await crew.until(({ completed }) => completed >= count, startedAt + capMs);
  if (all) await settled(queue, wall() + 10_000);
  const tookMs = wall() - startedAt;
  const done = all ? count : crew.progress().completed;
  if (!all) stage.note(`ended after ${capMs / 1_000} s with ${done} of ${count} jobs done; the rate is of those`);
  const reports = await crew.stop();
  checkRuns(reports, count, 1, !all);
  return {
    perSecond: (done * 1_000) / tookMs,
    rssMb: Math.max(...reports.map(({ peakRssMb }) => peakRssMb)),
    loopMs: Math.max(...reports.map(({ loopDelayP99Ms }) => loopDelayP99Ms)),
  };
}
