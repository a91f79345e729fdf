import type { Selection } from '../bulk/selection.ts';
import type { RedriveOptions } from '../operate.ts';
import { askingOption, BULK_JSON, type BulkFlags, bulk, bulkOptions, rateOption, readRate } from './bulk.ts';
import { number } from './bulk-lines.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { wrongUsage } from './failure.ts';
import { given, read, readDuration, readInteger, readJson } from './flags.ts';
import { jobListLines, pageNote } from './job-list.ts';
import { exportLines, PAGE } from './jobs.ts';
import { isEmpty, readFlags, type SelectionFlags, selecting } from './selection.ts';
import { hintAtNothing, readAfter, withWholeIds } from './which-jobs.ts';

type ListFlags = SelectionFlags & { readonly after?: string };
type RedriveFlags = SelectionFlags &
  BulkFlags & {
    readonly rate?: string;
    readonly keepAttempts?: true;
    readonly canary?: string;
    readonly canaryTimeout?: string;
    readonly edit?: string;
  };

export function addDead(program: CliCommand, shell: Shell): void {
  const dead = program.command('dead').description('List dead jobs, redrive them, or delete them.');
  selecting(
    dead.command('list').description('Dead jobs, those that died last first.'),
    'dead',
    `how many (default: ${PAGE})`,
  )
    .option('--after <id>', 'continue after this job, the last one of the page before')
    .addHelpText('after', '\nWith --json: { jobs: [...] }, times in ms since the epoch.')
    .action((flags: ListFlags) => list(shell, flags));
  const redriving = selecting(
    dead
      .command('redrive')
      .description('Bring dead jobs back, oldest first. They keep their ledger and get all their attempts again.')
      .argument('[ids...]', 'the ids of dead jobs; or choose them by options, which add up'),
    'dead',
  );
  rateOption(bulkOptions(redriving))
    .option('--keep-attempts', 'go on with the attempts that were left')
    .option('--canary <n>', 'bring so many back first, and the rest only when these have completed without a failure')
    .option('--canary-timeout <duration>', 'how long to wait for them (default: 10m)')
    .option('--edit <json>', 'another input, for a single job')
    .addHelpText('after', BULK_JSON)
    .action((ids: string[], flags: RedriveFlags) => redrive(shell, ids, flags));
  const discarding = selecting(
    dead
      .command('discard')
      .description('Delete dead jobs and their ledgers for good. Asks before it does.')
      .argument('[ids...]', 'the ids of dead jobs; or choose them by options, which add up'),
    'dead',
  );
  askingOption(bulkOptions(discarding))
    .addHelpText('after', BULK_JSON)
    .action((ids: string[], flags: SelectionFlags & BulkFlags) => discard(shell, ids, flags));
  selecting(dead.command('export').description('Print dead jobs as JSON, one per line.'), 'dead').action(
    (flags: SelectionFlags) =>
      exportLines(shell, readFlags(flags), (mulligan, selection) => mulligan.dead.export(selection)),
  );
}

async function list({ output, ...shell }: Shell, flags: ListFlags): Promise<void> {
  const selection = readFlags(flags);
  const limit = selection.limit ?? PAGE;
  const { jobs, hint } = await withExisting(shell.database(), async (mulligan) => {
    const chosen = await withWholeIds(mulligan, selection);
    const found = await mulligan.dead.list({ ...chosen, ...(await readAfter(mulligan, flags.after)), limit });
    const asked = { ...selection, state: 'dead' } as const;
    return { jobs: found, hint: found.length === 0 ? await hintAtNothing(mulligan, asked) : null };
  });
  output.answer({ jobs }, () => (jobs.length === 0 ? ['No dead job matches.'] : jobListLines(jobs, output)));
  const note = hint ?? pageNote(jobs, limit);
  if (note !== null) output.note(note);
}

async function redrive(shell: Shell, asked: readonly string[], flags: RedriveFlags): Promise<void> {
  const options: RedriveOptions = {
    ...readDeadFlags(asked, flags),
    ...readRate(flags.rate),
    ...given('keepAttempts', flags.keepAttempts),
    ...read('canary', flags.canary, (text) => readInteger(text, '--canary', { min: 1, max: 1_000 })),
    ...read('canaryTimeout', flags.canaryTimeout, (text) => readDuration(text, '--canary-timeout')),
    ...read('edit', flags.edit, (text) => readJson(text, '--edit')),
  };
  const words = {
    verb: 'redrive',
    done: 'redriven',
    what: 'dead jobs',
    asks: false,
    rate: flags.rate,
    canary: flags.canary,
  };
  const selection = readDeadFlags(asked, flags);
  await bulk(
    shell,
    flags,
    words,
    selection,
    (mulligan, how) => mulligan.dead.redrive({ ...options, ...how }),
    async ({ jobs }) => {
      if (selection.ids !== undefined || selection.reason !== undefined) return null;
      const { count } = await jobs.count({ ...selection, state: ['scheduled', 'retrying'] });
      if (count > 0) return `${number(count)} that match are scheduled or retrying: mulligan jobs run-now starts them.`;
      const { count: alive } = await jobs.count({ ...selection, state: ['ready', 'running'] });
      return alive === 0 ? null : `${number(alive)} that match are ready or running: they need no redrive.`;
    },
  );
}

async function discard(shell: Shell, asked: readonly string[], flags: SelectionFlags & BulkFlags): Promise<void> {
  const selection = readDeadFlags(asked, flags);
  const words = { verb: 'discard', done: 'discarded', what: 'dead jobs', asks: true };
  await bulk(shell, flags, words, selection, (mulligan, how) => mulligan.dead.discard({ ...selection, ...how }));
}

function readDeadFlags(ids: readonly string[], flags: SelectionFlags): Omit<Selection, 'state'> {
  const selection = readFlags(flags, ids);
  if (!isEmpty(selection)) return selection;
  throw wrongUsage('expected which dead jobs: their ids, --name, --error or another option. See mulligan dead list.');
}
