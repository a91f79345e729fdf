import { systemClock } from '../clock.ts';
import type { RegisteredWorker } from '../store/store.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { tableLines } from './table.ts';
import { span } from './time.ts';

export function addWorkers(program: CliCommand, shell: Shell): void {
  const workers = program.command('workers').description('List the workers of all processes.');
  workers
    .command('list')
    .description('What runs where: version, queues and job names of each worker, and when it was last seen.')
    .addHelpText(
      'after',
      '\nA worker is seen every 8 to 23 s. One that was not seen for longer was killed, hangs or cannot reach the database:\nafter a minute it is lost (alive: false), after an hour it is forgotten.\nWith --json: { workers: [{ id, name, version, mulligan, host, pid, concurrency, queues, jobs, startedAt, lastSeenAt,\nalive }] }.',
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
        { title: 'queues', gives: 'shortened', max: 40 },
        { title: 'jobs', gives: 'shortened', max: 40 },
        { title: 'started', align: 'right' },
        { title: 'seen', align: 'right' },
      ],
      workers.map((worker) => [
        worker.id,
        worker.version ?? '-',
        worker.host,
        worker.pid,
        worker.queues.join(', '),
        worker.jobs.join(', ') || '-',
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

function seen(worker: RegisteredWorker): string | { text: string; style: 'red' } {
  return worker.alive ? ago(worker.lastSeenAt) : { text: `lost, ${ago(worker.lastSeenAt)}`, style: 'red' };
}
