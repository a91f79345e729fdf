import type { CliCommand, Shell } from './command.ts';
import { endingLines, surprises } from './demo/finale.ts';
import { RISKY_QUEUE, roles } from './demo/jobs.ts';
import { perform } from './demo/perform.ts';
import { type Afterwards, onStage } from './demo/stage.ts';
import { makeView } from './demo/view.ts';
import { Failure, wrongUsage } from './failure.ts';
import type { Output } from './output.ts';

export function addDemo(program: CliCommand, shell: Shell): void {
  program
    .command('demo')
    .description('Watch jobs fail and recover: a queue in a temporary file, two worker processes, about ten seconds.')
    .option('--keep', 'keep the database, to look around in it with the other commands')
    .addHelpText('after', '\nWith --json: { jobs: [{ job, runs }], stats }, when it is over.')
    .action(async (flags: { keep?: true }) => {
      if (program.opts().db !== undefined) {
        throw wrongUsage('--db: the demo makes a temporary database of its own. --keep keeps it.');
      }
      await demo(shell.output, flags.keep === true ? 'keep' : 'remove');
    });
}

async function demo(output: Output, afterwards: Afterwards): Promise<void> {
  await onStage(afterwards, async (url, interrupted) => {
    output.lines(introduction(output));
    const ending = await perform(url, makeView(output), interrupted);
    if (ending === null) return output.note('Interrupted.');
    output.answer(ending, () => [...endingLines(ending, output), ...farewell(url, afterwards)]);
    const wrong = surprises(ending);
    if (wrong.length > 0) throw new Failure('NOT_DONE', `the demo did not go as planned: ${wrong.join('; ')}.`);
  });
}

function introduction(output: Output): string[] {
  const count = roles.reduce((sum, role) => sum + role.count, 0);
  return [
    output.paint('bold', `Mulligan: ${count} jobs, a queue in a temporary file, two worker processes.`),
    'Some jobs succeed, some fail and are retried, some can never succeed, and one kills the process it runs in.',
    `That one, and two innocent jobs beside it, wait in the queue ${RISKY_QUEUE}, which has a worker process of its own.`,
    'Delays are short, and leases last a second, so that this ends in about ten seconds; real ones are longer.',
    '',
  ];
}

function farewell(url: string, afterwards: Afterwards): string[] {
  if (afterwards === 'keep') {
    return [
      'The database was kept. Look around in it:',
      `  export MULLIGAN_DB=${url}`,
      '  mulligan jobs list',
      '  mulligan dead list',
    ];
  }
  return [
    'The temporary file is gone; demo --keep keeps it. Try next:',
    '  mulligan policy list',
    '  mulligan policy preview --preset financial',
    '  mulligan --help',
  ];
}
