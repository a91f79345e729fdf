import { type Drained, type DrainOptions, drain } from '../harness/drain.ts';
import { median } from '../harness/measure.ts';
import type { OpenPeer } from '../harness/peer.ts';
import { CONCURRENCY, points, type Stage, type Workload } from '../harness/workload.ts';

/* How cost grows: one curve per store. Their shapes are the result, more than their heights. */

const stores = ['mulligan-memory', 'mulligan-sqlite', 'mulligan-postgres'];
const common = { mostRounds: 3, notQuick: 'curves take a minute and more per store' } as const;

const BACKLOGS = [1_000, 10_000, 100_000, 1_000_000];
const CLAIM = 100;
const WARM_CLAIMS = 10;

export const w8a: Workload = {
  ...common,
  id: 'W8a',
  title: 'Claim time against backlog',
  what:
    `One claim of ${CLAIM} jobs through the store contract, as a worker asks for them, among ever more waiting jobs of one ` +
    'priority (up to 10,000 in a quick run). The median of 100 claims; between two of them, the claimed jobs are completed and ' +
    'as many enqueued, so that the backlog keeps its size. ' +
    'Checked: each claim got as many different jobs as it asked for, each could be completed, and the backlog is what it was.',
  peers: stores,
  curve: { x: 'waiting jobs', y: `time of one claim of ${CLAIM} jobs` },
  metrics: points(BACKLOGS, 'waiting', { unit: 'ms', better: 'lower' }),
  async run(stage) {
    const queue = await stage.open();
    let waiting = 0;
    for (const backlog of BACKLOGS.filter((size) => size <= stage.size(1_000_000, 10_000))) {
      stage.say(`filling up to ${backlog} waiting jobs`);
      await queue.fillWaiting(backlog - waiting);
      waiting = backlog;
      await queue.settleDown(true);
      const times: number[] = [];
      const claims = WARM_CLAIMS + stage.size(100, 20);
      for (let n = 0; n < claims; n++) times.push((await queue.timeClaim?.(CLAIM)) ?? Number.NaN);
      const { waiting: left, running } = await queue.counts();
      if (left !== backlog || running !== 0) throw new Error(`wrong: ${left} wait and ${running} run, not ${backlog}`);
      stage.set(String(backlog), median(times.slice(WARM_CLAIMS)));
    }
  },
};

const CONCURRENCIES = [1, 10, 100, 1_000];

export const w8b: Workload = {
  ...common,
  id: 'W8b',
  title: 'Memory against concurrency',
  what:
    'The peak memory (RSS) of one worker process that works off 10,000 jobs that do nothing (1,000 in a quick run), a fresh ' +
    'process for each concurrency. In memory, the waiting jobs are in that process too. Checked: each job ran exactly once.',
  peers: stores,
  curve: { x: 'concurrency', y: 'peak memory of the worker process' },
  metrics: points(CONCURRENCIES, 'concurrency', { unit: 'MB', better: 'lower' }),
  async run(stage) {
    const queue = await stage.open();
    for (const concurrency of CONCURRENCIES) {
      stage.say(`concurrency ${concurrency}`);
      await queue.reset();
      const sizes = { count: stage.size(10_000, 1_000), capMs: stage.size(60_000, 5_000) };
      stage.set(String(concurrency), (await drain(stage, queue, { ...sizes, concurrency, apart: true })).rssMb);
    }
  },
};

const PROCESSES = [1, 2, 4, 8];

/** Long enough that the start of a process, which compiles its code, does not count. */
function longDrain(stage: Stage, queue: OpenPeer, how: Pick<DrainOptions, 'processes' | 'prepared'>): Promise<Drained> {
  return drain(stage, queue, { count: stage.size(300_000, 3_000), capMs: stage.size(60_000, 5_000), ...how });
}

export const w8c: Workload = {
  ...common,
  id: 'W8c',
  title: 'Throughput against worker processes',
  what:
    `W2's drain, of 300,000 jobs, with ever more worker processes of concurrency ${CONCURRENCY}, all on the machine of the store: beyond its ` +
    'cores there is nothing to gain, and the curve shows what is lost. Memory has one process only. ' +
    'Checked: each job ran exactly once.',
  peers: ['mulligan-sqlite', 'mulligan-postgres', 'raw-sqlite', 'raw-postgres-update'],
  curve: { x: 'worker processes', y: 'jobs worked off' },
  metrics: points(PROCESSES, 'processes', { unit: '/s', better: 'higher' }),
  async run(stage) {
    const queue = await stage.open();
    for (const processes of PROCESSES) {
      stage.say(`${processes} worker processes`);
      await queue.reset();
      stage.set(String(processes), (await longDrain(stage, queue, { processes })).perSecond);
    }
  },
};

export const w8d: Workload = {
  ...common,
  id: 'W8d',
  title: 'Waiting for locks against worker processes',
  what:
    "W8c's drain again, while another connection looks every 10 ms at what the server's sessions do: of a hundred that " +
    'were at work, so many waited for a lock that another held (rows, transactions, tables). ' +
    'Checked: each job ran exactly once.',
  peers: ['mulligan-postgres'],
  curve: { x: 'worker processes', y: 'of 100 sessions at work, waiting for a lock' },
  metrics: points(PROCESSES, 'processes', { unit: '', better: 'lower' }),
  async run(stage) {
    const queue = await stage.open();
    for (const processes of PROCESSES) {
      stage.say(`${processes} worker processes`);
      await queue.reset();
      let waiting: (() => Promise<number>) | undefined;
      const prepared = async (): Promise<void> => {
        waiting = await queue.watchLocks?.();
      };
      await longDrain(stage, queue, { processes, prepared });
      stage.set(String(processes), (await waiting?.()) ?? Number.NaN);
    }
  },
};
