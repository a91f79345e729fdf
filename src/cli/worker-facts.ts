import { systemClock } from '../clock.ts';
import { endangersLeases, type RegisteredWorker } from '../store/store.ts';
import type { Output } from './output.ts';
import { type Cell, tableLines } from './table.ts';
import { span } from './time.ts';

const styles = { silent: 'yellow', lost: 'red' } as const;

export function workerListLines(workers: readonly RegisteredWorker[], output: Output): string[] {
  return tableLines(
    [
      // Never cut: ids of one host begin alike.
      { title: 'worker' },
      { title: 'version', dropRank: 4 },
      { title: 'host', gives: 'shortened', dropRank: 2 },
      { title: 'pid', align: 'right', dropRank: 1 },
      { title: 'running', align: 'right' },
      { title: 'blocked', align: 'right', dropRank: 5 },
      { title: 'queues', gives: 'shortened', max: 40, dropRank: 7 },
      { title: 'jobs', gives: 'shortened', max: 40, dropRank: 6 },
      { title: 'started', align: 'right', dropRank: 3 },
      { title: 'seen', align: 'right' },
    ],
    workers.map((worker) => [
      worker.id,
      worker.version ?? '-',
      worker.host,
      worker.pid ?? '-',
      runningText(worker),
      blocked(worker),
      worker.queues.join(', '),
      worker.http?.takesAll ? '*' : worker.jobs.join(', ') || '-',
      ago(worker.startedAt),
      seen(worker),
    ]),
    output,
  );
}

/** A text about a worker, in the colour of its state. */
export function inStateColour({ state }: RegisteredWorker, text: string): Cell {
  return state === 'alive' ? text : { text, style: styles[state] };
}

/** `3/10`: running when it was last seen, of those that it runs at once. */
export function runningText({ running, concurrency }: RegisteredWorker): string {
  return `${running ?? '-'}/${concurrency}`;
}

function ago(at: number): string {
  return `${span(Math.max(0, systemClock.now() - at))} ago`;
}

function blocked(worker: RegisteredWorker): Cell {
  if (worker.loopDelayMs === null) return '-';
  const text = span(worker.loopDelayMs);
  return endangersLeases(worker) ? { text, style: 'red' } : text;
}

function seen(worker: RegisteredWorker): Cell {
  const text = ago(worker.lastSeenAt);
  return inStateColour(worker, worker.state === 'alive' ? text : `${worker.state}, ${text}`);
}
