import { checkOneOf, unexpected } from '../config.ts';
import { finishedStates } from '../job.ts';
import type { RetentionInfo } from '../retention.ts';
import { durationText, type RetentionOptions, textOf } from '../retention-options.ts';
import { type ByFlags, byOption, type CliCommand, type Shell } from './command.ts';
import { withExisting } from './database.ts';
import { given, readDuration } from './flags.ts';
import type { Output } from './output.ts';
import { type Cell, tableLines } from './table.ts';

const KEPT = 'kept';
const OTHERS = '(all others)';

interface OrderFlags extends ByFlags {
  readonly name?: string;
}

export function addRetention(program: CliCommand, shell: Shell): void {
  const retention = program
    .command('retention')
    .description('See and change how long finished jobs are kept. It is stored, for all processes.');
  retention
    .command('list')
    .description('What holds for each job name that has a rule of its own, and for all others.')
    .addHelpText('after', '\nWith --json: { retention: [{ name, kept, code, set }] }, in ms; null is for ever.')
    .action(() => list(shell));
  named(
    byOption(retention.command('set'))
      .description('Keep finished jobs for longer or shorter than code says, until it is reset.')
      .argument(`<${KEPT}>`, 'completed, dead or cancelled with a duration, or forever: completed=30d,dead=forever'),
  )
    .addHelpText(
      'after',
      '\nThe least is 5 minutes. What is left out stays as it was. What is shorter deletes jobs for good within a minute.',
    )
    .action((kept: string, flags: OrderFlags) => set(shell, kept, flags));
  named(byOption(retention.command('reset')).description('Take away what was set by hand: code decides again.')).action(
    (flags: OrderFlags) => reset(shell, flags),
  );
}

function named(command: CliCommand): CliCommand {
  return command.option('--name <job>', 'the job name it is for (default: all that have no rule of their own)');
}

function orderOf({ name, by }: OrderFlags): OrderFlags {
  return { ...given('name', name), ...given('by', by) };
}

async function list({ output, ...shell }: Shell): Promise<void> {
  const retention = await withExisting(shell.database(), (mulligan) => mulligan.retention.list());
  output.answer({ retention }, () => listLines(retention, output));
}

async function set(shell: Shell, kept: string, flags: OrderFlags): Promise<void> {
  const values = readKept(kept);
  changed(shell, await withExisting(shell.database(), (mulligan) => mulligan.retention.set(values, orderOf(flags))));
}

async function reset(shell: Shell, flags: OrderFlags): Promise<void> {
  changed(shell, await withExisting(shell.database(), (mulligan) => mulligan.retention.reset(orderOf(flags))));
}

function changed({ output }: Shell, info: RetentionInfo): void {
  output.answer(info, () => listLines([info], output));
}

function listLines(all: readonly RetentionInfo[], output: Output): string[] {
  return tableLines(
    [
      { title: 'job name', gives: 'shortened', max: 60 },
      ...finishedStates.map((title) => ({ title, align: 'right' }) as const),
      { title: 'in code' },
      { title: 'set by hand' },
    ],
    all.map(({ name, kept, code, set: byHand }): Cell[] => [
      name ?? OTHERS,
      ...finishedStates.map((state) => durationText(kept[state])),
      textOf(code) || '-',
      textOf(byHand) || '-',
    ]),
    output,
  );
}

/** `completed=30d,dead=forever`. */
export function readKept(text: string): RetentionOptions {
  const kept = text.split(',').map((part) => {
    const [state = '', duration = '', ...more] = part.split('=');
    if (duration === '' || more.length > 0) {
      throw unexpected(KEPT, 'state=duration, several with commas', text, 'For example completed=30d,dead=forever.');
    }
    checkOneOf(state, finishedStates, KEPT);
    return [state, duration === 'forever' ? null : readDuration(duration, `${KEPT}: ${state}`)];
  });
  return Object.fromEntries(kept);
}
