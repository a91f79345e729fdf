import { drain } from '../harness/drain.ts';
import { CONCURRENCY, type Workload } from '../harness/workload.ts';

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
    { key: 'cpu', title: 'CPU time per job, one process', unit: 'µs', better: 'lower' },
  ],
  async run(stage) {
    const queue = await stage.open();
    const sizes = { count: stage.size(50_000, 3_000), capMs: stage.size(60_000, 2_000) };
    const one = await drain(stage, queue, sizes);
    stage.set('one', one.perSecond);
    stage.set('rss', one.rssMb);
    stage.set('loop', one.loopMs);
    if (one.cpuPerRunUs !== null) stage.set('cpu', one.cpuPerRunUs);
    if (stage.peer.inProcess) return;
    await queue.reset();
    stage.set('two', (await drain(stage, queue, { ...sizes, processes: 2 })).perSecond);
  },
};
