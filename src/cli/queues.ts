import { closest } from '../config.ts';
import { states } from '../job.ts';
import { knownQueues } from '../known-queues.ts';
import type { Mulligan } from '../mulligan.ts';
import { printable } from '../printable.ts';
import { type ByFlags, byOption, type CliCommand, type Shell } from './command.ts';
import { withExisting } from './database.ts';
import { Failure } from './failure.ts';
import { given } from './flags.ts';
import { tableLines } from './table.ts';

interface PauseFlags extends ByFlags {
  readonly force?: true;
}

export function addQueues(program: CliCommand, shell: Shell): void {
  const queues = program.command('queues').description('List, pause and resume queues.');
  queues
    .command('list')
    .description('All queues, and how many jobs each holds by state.')
    .addHelpText('after', '\nWith --json: { queues: [{ queue, paused, states }] }.')
    .action(() => list(shell));
  byOption(queues.command('pause'))
    .description('Pause a queue: no job of it starts. Running jobs go on, and jobs can still be enqueued.')
    .argument('<queue>', 'the name of the queue')
    .option('--force', 'also when there is no queue of that name yet')
    .addHelpText('after', '\nWith --json: { queue, paused }.')
    .action((queue: string, flags: PauseFlags) => setPaused(shell, queue, 'paused', flags));
  byOption(queues.command('resume'))
    .description('Let workers claim from a queue again.')
    .argument('<queue>', 'the name of the queue')
    .addHelpText('after', '\nWith --json: { queue, paused }.')
    .action((queue: string, flags: ByFlags) => setPaused(shell, queue, 'resumed', flags));
}

async function list({ output, ...shell }: Shell): Promise<void> {
  const queues = await withExisting(shell.database(), async (mulligan) => {
    const [known, stats] = await Promise.all([mulligan.queues.list(), mulligan.stats()]);
    const none = Object.fromEntries(states.map((state) => [state, 0]));
    const inState = new Map(Object.entries(stats.queues).map(([queue, own]) => [queue, own.states]));
    return known.map(({ queue, paused }) => ({ queue, paused, states: inState.get(queue) ?? none }));
  });
  output.answer({ queues }, () => {
    if (queues.length === 0) return ['There is no queue yet. The first enqueue creates one.'];
    return tableLines(
      [{ title: 'queue', gives: 'shortened', max: 60 }, { title: 'paused' }, ...states.map(rightAligned)],
      queues.map(({ queue, paused, states: inState }) => [
        queue,
        paused ? { text: 'paused', style: 'yellow' } : '-',
        ...states.map((state) => inState[state] ?? 0),
      ]),
      output,
    );
  });
}

function rightAligned(title: string): { title: string; align: 'right' } {
  return { title, align: 'right' };
}

async function setPaused(
  { output, ...shell }: Shell,
  queue: string,
  wanted: 'paused' | 'resumed',
  { force, by }: PauseFlags,
): Promise<void> {
  await withExisting(shell.database(), async (mulligan) => {
    if (!force) await refuseUnknown(mulligan, queue, wanted);
    await mulligan.queues[wanted === 'paused' ? 'pause' : 'resume'](queue, given('by', by));
  });
  output.answer({ queue, paused: wanted === 'paused' }, () => [`Queue ${printable(queue)} is ${wanted}.`]);
}

/** A misspelt name would be paused without a word, and the queue that was meant would go on. */
async function refuseUnknown(mulligan: Mulligan, queue: string, wanted: 'paused' | 'resumed'): Promise<void> {
  const known = await knownQueues(mulligan);
  if (known.includes(queue)) return;
  const meant = closest(queue, known);
  const hints = [
    ...(meant === null ? ['mulligan queues list names them all.'] : [`Did you mean ${meant}?`]),
    ...(wanted === 'paused' ? ['--force pauses it before its first job.'] : []),
  ];
  throw new Failure('NOT_FOUND', `there is no queue ${queue}. ${hints.join(' ')}`);
}
