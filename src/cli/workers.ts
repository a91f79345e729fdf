import { systemClock } from '../clock.ts';
import { endangersLeases, type RegisteredWorker } from '../store/store.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { type Cell, tableLines } from './table.ts';
import { span } from './time.ts';
import { inStateColour, runningText } from './worker-facts.ts';

export function addWorkers(program: CliCommand, shell: Shell): void {
  const workers = program.command('workers').description('List the workers of all processes.');
  workers
    .command('list')
    .description(
      'What runs where: version, running jobs, queues and job names of each worker, and when it was last seen.',
    )
    .addHelpText(
      'after',
      `
A worker is seen every 8 to 23 s. One that was not seen for longer was killed, hangs or cannot reach the database:
after half a minute it is silent, after a minute lost (alive: false), after an hour it is forgotten.
running: of how many at most, when it was last seen. blocked: the longest that its event loop was blocked in the last
minutes; red when leases were in danger. Workers that speak HTTP are registered from their claims: what they do not
say is shown as -, and jobs as * when their claims name none.
With --json: { workers: [{ id, name, version, mulligan, host, pid, concurrency, queues, jobs, running, leaseMs,
loopDelayMs, http, startedAt, lastSeenAt, state, alive }] }.`,
    )
    .action(() => list(shell));
}

async function list({ output, ...shell }: Shell): Promise<void> {
  const workers = await withExisting(shell.database(), (mulligan) => mulligan.workers.list());
  output.answer({ workers }, () => {
    if (workers.length === 0)
      return ['No worker has registered. Start one with mulligan work, or with mulligan.work() in a program.'];
    return tableLines(
      [
        { title: 'worker', gives: 'shortened' },
        { title: 'version' },
        { title: 'host', gives: 'shortened' },
        { title: 'pid', align: 'right' },
        { title: 'running', align: 'right' },
        { title: 'blocked', align: 'right' },
        { title: 'queues', gives: 'shortened', max: 40 },
        { title: 'jobs', gives: 'shortened', max: 40 },
        { title: 'started', align: 'right' },
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
  });
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
