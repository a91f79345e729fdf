import { drain } from '../harness/drain.ts';
import { CONCURRENCY, type Workload } from '../harness/workload.ts';

const RUNS = 3;

export const w3: Workload = {
  id: 'W3',
  title: 'Retry churn',
  what:
    'Jobs that fail twice and then succeed, with the smallest backoff the queue offers, in one worker process with ' +
    `concurrency ${CONCURRENCY}. Runs per second, from the word to start until the store says that none waits or runs. ` +
    `Checked: each job ran exactly ${RUNS} times and completed once.`,
  metrics: [
    { key: 'runs', title: 'runs', unit: '/s', better: 'higher' },
    { key: 'cpu', title: 'CPU time per run', unit: 'µs', better: 'lower' },
  ],
  async run(stage) {
    const queue = await stage.open();
    const sizes = { count: stage.size(20_000, 500), capMs: stage.size(90_000, 1_500) };
    const { perSecond, cpuPerRunUs } = await drain(stage, queue, { ...sizes, kind: 'twice', runs: RUNS });
    stage.set('runs', perSecond);
    if (cpuPerRunUs !== null) stage.set('cpu', cpuPerRunUs);
    stage.note(`backoff: ${stage.peer.backoff.smallest}`);
  },
};
