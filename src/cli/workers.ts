import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { workerListLines } from './worker-facts.ts';

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
say is shown as -, and jobs as * when their claims name none. In a narrow terminal columns are left out.
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
    return workerListLines(workers, output);
  });
}
