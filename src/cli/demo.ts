import type { CliCommand, Shell } from './command.ts';
import { jobTypes, RISKY_QUEUE } from './demo/jobs.ts';
import { runDemo } from './demo/run-demo.ts';
import { summaryLines, unexpectedEnds } from './demo/summary.ts';
import { type Afterwards, withTemporaryDatabase } from './demo/temporary-database.ts';
import { makeView } from './demo/view.ts';
import { Failure, wrongUsage } from './failure.ts';
import type { Output } from './output.ts';

export function addDemo(program: CliCommand, shell: Shell): void {
  program
    .command('demo')
    .description('Watch jobs fail and recover: a queue in a temporary file, two worker processes, about ten seconds.')
    .option('--keep', 'keep the database, to explore it with the other commands')
    .addHelpText('after', '\nWith --json: { jobs: [{ job, runs }], stats }, when it is over.')
    .action(async (flags: { keep?: true }) => {
      if (program.opts().db !== undefined) {
        throw wrongUsage('--db: the demo makes a temporary database of its own. --keep keeps it.');
      }
      await demo(shell.output, flags.keep === true ? 'keep' : 'remove');
    });
}

async function demo(output: Output, afterwards: Afterwards): Promise<void> {
  await withTemporaryDatabase(afterwards, async (url, interrupted) => {
    output.lines(introduction(output));
    const summary = await runDemo(url, makeView(output), interrupted);
    if (summary === null) return output.note('Interrupted.');
    output.answer(summary, () => [...summaryLines(summary, output), ...nextSteps(url, afterwards)]);
    const wrong = unexpectedEnds(summary);
    if (wrong.length > 0) throw new Failure('NOT_DONE', `the demo did not go as planned: ${wrong.join('; ')}.`);
  });
}

function introduction(output: Output): string[] {
  const count = jobTypes.reduce((sum, type) => sum + type.count, 0);
  return [
    output.paint('bold', `Mulligan: ${count} jobs, a queue in a temporary file, two worker processes.`),
    'Some jobs succeed, some fail and are retried, some can never succeed, and one kills the process it runs in.',
    `That one, and two harmless jobs beside it, wait in the queue ${RISKY_QUEUE}, which has a worker process of its own.`,
    'Delays are short, and leases last a second, so that this ends in about ten seconds; real ones are longer.',
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
    '  mulligan policy list',
    '  mulligan policy preview --preset financial',
    '  mulligan --help',
  ];
}
