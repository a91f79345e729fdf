import { once } from 'node:events';
import { join } from 'node:path';
import type { CliCommand, Shell } from './command.ts';
import { jobTypes, RISKY_QUEUE } from './demo/jobs.ts';
import { demoOutage, OUTAGE_SECONDS } from './demo/outage/demo-outage.ts';
import { runDemo } from './demo/run-demo.ts';
import { summaryLines, unexpectedEnds } from './demo/summary.ts';
import { type Afterwards, withTemporaryFolder } from './demo/temporary-folder.ts';
import { makeView } from './demo/view.ts';
import { Failure, wrongUsage } from './failure.ts';
import type { Output } from './output.ts';

interface DemoFlags {
  readonly keep?: true;
  readonly outage?: true | string;
}

const JSON_HELP = `
With --json, when it is over: { jobs: [{ job, runs }], stats }; with --outage { outageMs, ungated, gated }, each with jobs,
completed, dead, attempts, calls, callsWhileOff, firstSuccessAfterMs and recoveryMs.`;

export function addDemo(program: CliCommand, shell: Shell): void {
  program
    .command('demo')
    .description('Watch jobs fail and recover: a queue in a temporary file, two worker processes, about ten seconds.')
    .option(
      '--outage [seconds]',
      `switch a service off that jobs need, for ${OUTAGE_SECONDS} seconds, with a gate and without; about a minute`,
    )
    .option('--keep', 'keep the database, to explore it with the other commands')
    .addHelpText('after', JSON_HELP)
    .action(async ({ keep, outage }: DemoFlags) => {
      if (program.opts().db !== undefined) {
        throw wrongUsage('--db: the demo makes a temporary database of its own. --keep keeps it.');
      }
      const afterwards = keep === true ? 'keep' : 'remove';
      if (outage === undefined) await demo(shell.output, afterwards);
      else await demoOutage(shell.output, outage, afterwards);
    });
}

async function demo(output: Output, afterwards: Afterwards): Promise<void> {
  await withTemporaryFolder(afterwards, async (folder, interrupted) => {
    const url = `sqlite:${join(folder, 'demo.db')}`;
    const summary = await runDemo(url, {
      interrupted,
      begin(dashboard) {
        output.lines(introduction(output, dashboard));
        return makeView(output);
      },
      async finish(ended, dashboard) {
        output.answer(ended, () => [...summaryLines(ended, output), ...nextSteps(url, afterwards)]);
        if (output.isTerminal && !output.isJson && process.stdin.isTTY) await enterKey(output, dashboard, interrupted);
      },
    });
    if (summary === null) return output.note('Interrupted.');
    const wrong = unexpectedEnds(summary);
    if (wrong.length > 0) throw new Failure('NOT_DONE', `the demo did not go as planned: ${wrong.join('; ')}.`);
  });
}

/** Someone may still be looking at the dashboard. Without a terminal the demo ends by itself. */
async function enterKey(output: Output, dashboard: string, interrupted: AbortSignal): Promise<void> {
  output.lines(['', `The dashboard is at ${dashboard} until you press Enter.`]);
  await once(process.stdin, 'data', { signal: interrupted }).catch(() => {});
  process.stdin.pause();
}

function introduction(output: Output, dashboard: string): string[] {
  const count = jobTypes.reduce((sum, type) => sum + type.count, 0);
  return [
    output.paint('bold', `Mulligan: ${count} jobs, a queue in a temporary file, two worker processes.`),
    'Some jobs succeed, some fail and are retried, some can never succeed, and one kills the process it runs in.',
    `That one, and two harmless jobs beside it, wait in the queue ${RISKY_QUEUE}, which has a worker process of its own.`,
    'Delays are short, and leases last a second, so that this ends in about ten seconds; real ones are longer.',
    `The dashboard shows it all: ${dashboard}`,
    '',
  ];
}

function nextSteps(url: string, afterwards: Afterwards): string[] {
  if (afterwards === 'keep') {
    return [
      'The database was kept. Explore it:',
      `  export MULLIGAN_DB=${url}`,
      '  mulligan jobs list',
      '  mulligan dead list',
    ];
  }
  return [
    'The temporary file was removed; demo --keep keeps it. Try next:',
    '  mulligan demo --outage',
    '  mulligan policy list',
    '  mulligan policy preview --preset financial',
    '  mulligan --help',
  ];
}
