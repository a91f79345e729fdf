import type { Crew } from '../harness/crew.ts';
import { percentile, wall } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import { arrive, jobs, type Stage, type Workload } from '../harness/workload.ts';

const PER_SECOND = 20;
const WARM = 10;

export const w4: Workload = {
  id: 'W4',
  title: 'Pickup latency',
  what:
    `Jobs arrive one by one, ${PER_SECOND} per second, at an idle worker. From just before the enqueue call to the start ` +
    'of the handler: with the worker in another process, and for queues that need no server in the same one too. ' +
    'Checked: each job ran exactly once.',
  metrics: [
    { key: 'p50', title: 'another process, p50', unit: 'ms', better: 'lower' },
    { key: 'p99', title: 'another process, p99', unit: 'ms', better: 'lower' },
    { key: 'here50', title: 'same process, p50', unit: 'ms', better: 'lower' },
    { key: 'here99', title: 'same process, p99', unit: 'ms', better: 'lower' },
  ],
  async run(stage) {
    const queue = await stage.open();
    const count = stage.size(600, 20);
    if (!stage.peer.inProcess) {
      const waits = await measure(stage, queue, await stage.crew(1, queue, { jobs: count + WARM }), count);
      stage.set('p50', percentile(waits, 0.5));
      stage.set('p99', percentile(waits, 0.99));
    }
    if (stage.peer.engine !== 'sqlite' && stage.peer.engine !== 'memory') return;
    await queue.reset();
    const waits = await measure(stage, queue, stage.crewHere(queue, { jobs: count + WARM }), count);
    stage.set('here50', percentile(waits, 0.5));
    stage.set('here99', percentile(waits, 0.99));
  },
};

async function measure(stage: Stage, queue: OpenPeer, crew: Crew, count: number): Promise<readonly number[]> {
  await crew.go();
  for (const job of jobs(WARM, 'noop', count)) await queue.enqueueOne(job);
  await crew.until(({ completed }) => completed >= WARM, wall() + stage.size(10_000, 3_000));
  await arrive(queue, count, PER_SECOND);
  await crew.until(({ completed }) => completed >= count + WARM, wall() + stage.size(30_000, 3_000));
  const reports = await crew.stop();
  const waits = reports.flatMap((report) => report.waits);
  if (waits.length !== count) throw new Error(`wrong: ${waits.length} of ${count} jobs started`);
  for (const { started } of reports) {
    for (const [n, runs] of started.entries()) if (runs !== 1) throw new Error(`wrong: job ${n} ran ${runs} times`);
  }
  return waits;
}
