import { drain } from '../harness/drain.ts';
import type { Kind, OpenPeer } from '../harness/peer.ts';
import type { Stage, Workload } from '../harness/workload.ts';

const RUNS = 3;

export const w9: Workload = {
  id: 'W9',
  title: 'What a job costs the server',
  what:
    'The whole life of 20,000 jobs (2,000 in a quick run), in a queue that has seen as many: enqueued in bulk, worked off by one process, vacuumed. ' +
    'CPU time of all processes of PostgreSQL and of the worker, write-ahead log, and what tables and indexes keep, per job. ' +
    `Then the same with jobs that run ${RUNS} times: a retry costs half of the difference. Checked: each job ran as often as it should.`,
  notQuick: 'small numbers of jobs say nothing here',
  mostRounds: 3,
  peers: ['mulligan-postgres', 'raw-postgres-update'],
  metrics: [
    { key: 'server', title: 'server CPU per job', unit: 'µs', better: 'lower' },
    { key: 'worker', title: 'worker CPU per job', unit: 'µs', better: 'lower' },
    { key: 'wal', title: 'log per job', unit: 'B', better: 'lower' },
    { key: 'kept', title: 'kept per finished job', unit: 'B', better: 'lower' },
    { key: 'retryServer', title: 'server CPU per retry', unit: 'µs', better: 'lower' },
    { key: 'retryWorker', title: 'worker CPU per retry', unit: 'µs', better: 'lower' },
    { key: 'retryWal', title: 'log per retry', unit: 'B', better: 'lower' },
    { key: 'retryKept', title: 'kept per retry', unit: 'B', better: 'lower' },
  ],
  async run(stage) {
    const queue = await stage.open();
    const once = await life(stage, queue, 'noop', 1);
    const thrice = await life(stage, queue, 'twice', RUNS);
    for (const [key, cost] of Object.entries(once)) {
      stage.set(key, cost);
      const retry = ((thrice[key] ?? Number.NaN) - cost) / (RUNS - 1);
      stage.set(`retry${key.charAt(0).toUpperCase()}${key.slice(1)}`, retry);
    }
  },
};

/** What one job cost, from the enqueue to the vacuum after it. */
async function life(stage: Stage, queue: OpenPeer, kind: Kind, runs: number): Promise<Record<string, number>> {
  const count = stage.size(20_000, 2_000);
  stage.say(`jobs that run ${runs === 1 ? 'once' : `${runs} times`}`);
  const liveOnce = async (): Promise<number> => {
    const { capped, cpuMs } = await drain(stage, queue, { count, capMs: 120_000, kind, runs });
    if (capped) throw new Error('too slow to be measured');
    await queue.settleDown(true);
    return cpuMs;
  };
  await queue.reset();
  // Pages that only the backlog needs are there from now on, and used again.
  await liveOnce();
  const before = await queue.usage?.();
  const cpuMs = await liveOnce();
  const after = await queue.usage?.();
  if (before === undefined || after === undefined) throw new Error('it has no server');
  return {
    ...(before.cpuMs !== null && after.cpuMs !== null && { server: ((after.cpuMs - before.cpuMs) * 1_000) / count }),
    worker: (cpuMs * 1_000) / count,
    wal: (after.walBytes - before.walBytes) / count,
    kept: (after.keptBytes - before.keptBytes) / count,
  };
}
