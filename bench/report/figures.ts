import { type Results, show } from '../harness/runner.ts';
import type { Workload } from '../harness/workload.ts';

/** What docs/scaling.md calculates with: its name there, what it is, and where it was measured. */
const inputs: readonly (readonly [name: string, what: string, workload: string, key: string])[] = [
  ['drain', 'jobs worked off by one worker process', 'W2', 'one'],
  ['drain2', 'the same by two', 'W2', 'two'],
  ['drain8', 'the same by eight, all on the machine of the server', 'W8c', '8'],
  ['single', 'jobs enqueued with one call each, 64 calls in flight', 'W1', 'single'],
  ['bulk', 'jobs enqueued 1,000 to a call', 'W1', 'bulk'],
  ['churn', 'jobs enqueued and worked off side by side', 'W6b', 'rate'],
  ['retries', 'runs of jobs that fail twice', 'W3', 'runs'],
  ['backlog', 'drain before 1,000,000 waiting jobs, to an empty queue', 'W6', 'waitingRatio'],
  ['history', 'drain among 5,000,000 finished jobs, to an empty queue', 'W6', 'finishedRatio'],
  ['cpu', 'server CPU per job that runs once', 'W9', 'server'],
  ['cpu_retry', 'server CPU per retry', 'W9', 'retryServer'],
  ['worker', 'worker CPU per job that runs once', 'W9', 'worker'],
  ['wal', 'write-ahead log per job that runs once', 'W9', 'wal'],
  ['wal_retry', 'write-ahead log per retry', 'W9', 'retryWal'],
  ['kept', 'disk per finished job, indexes included', 'W9', 'kept'],
  ['kept_retry', 'disk per retry in the ledger', 'W9', 'retryKept'],
];

/** One row per input, as Mulligan has it on PostgreSQL. */
export function figures(results: Results, workloads: readonly Workload[]): string[][] {
  return inputs.map(([name, what, id, key]) => {
    const figure = results[id]?.peers['mulligan-postgres']?.figures[key];
    const unit = workloads.find((one) => one.id === id)?.metrics.find((metric) => metric.key === key)?.unit ?? '';
    return [`\`${name}\``, what, figure === undefined ? 'not yet' : show(figure.median, unit), id];
  });
}
