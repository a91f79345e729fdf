import { chunks, wall } from '../harness/measure.ts';
import { CONCURRENCY, checkRuns, jobs, settled, type Workload } from '../harness/workload.ts';

const RUNS = 3;

export const w3: Workload = {
  id: 'W3',
  title: 'Retry churn',
  what:
    'Jobs that fail twice and then succeed, with the smallest backoff the queue offers, in one worker process with ' +
    `concurrency ${CONCURRENCY}. Runs per second, from the word to start until the store says that none waits or runs. ` +
    `Checked: each job ran exactly ${RUNS} times and completed once.`,
  metrics: [{ key: 'runs', title: 'runs', unit: '/s', better: 'higher' }],
  async run(stage) {
    const queue = await stage.open();
    const count = stage.size(20_000, 500);
    const capMs = stage.size(90_000, 1_500);
    for (const part of chunks(jobs(count, 'twice'), 1_000)) await queue.enqueueBulk(part);
    await queue.settleDown();
    const crew = await stage.crew(1, queue, { jobs: count });
    const startedAt = wall();
    await crew.go();
    const all = await crew.until(({ completed }) => completed >= count, startedAt + capMs);
    if (all) await settled(queue, wall() + 10_000);
    const tookMs = wall() - startedAt;
    const { runs } = crew.progress();
    if (!all) stage.note(`ended after ${capMs / 1_000} s with ${runs} of ${count * RUNS} runs done`);
    checkRuns(all ? await crew.stop() : await crew.dismiss(), count, RUNS, !all);
    stage.set('runs', ((all ? count * RUNS : runs) * 1_000) / tookMs);
    stage.note(`backoff: ${stage.peer.backoff.smallest}`);
  },
};
