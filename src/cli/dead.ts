import { checkOneOf } from '../config.ts';
import { deadReasons } from '../retry/decision.ts';
import type { DeadSelection, RedriveRefusal } from '../store/store.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { wrongUsage } from './failure.ts';
import { given, read } from './flags.ts';
import { jobListLines, pageNote } from './job-list.ts';
import { readLimit } from './jobs.ts';
import { printable } from './printable.ts';

const PAGE = 50;

interface SelectionFlags {
  readonly name?: string;
  readonly queue?: string;
  readonly reason?: string;
  readonly limit?: string;
}
type RedriveFlags = SelectionFlags & { readonly attempts?: string; readonly dryRun?: true };
type ListFlags = Omit<SelectionFlags, 'reason'> & { readonly after?: string };

export function addDead(program: CliCommand, shell: Shell): void {
  const dead = program.command('dead').description('List dead jobs, redrive them, or delete them.');
  dead
    .command('list')
    .description('Dead jobs, newest first.')
    .option('--name <name>', 'only of this name')
    .option('--queue <queue>', 'only of this queue')
    .option('--limit <n>', `how many (default: ${PAGE})`)
    .option('--after <id>', 'continue after this job, the last one of the page before')
    .addHelpText('after', '\nWith --json: { jobs: [...] }, times in ms since the epoch.')
    .action((flags: ListFlags) => list(shell, flags));
  selecting(dead.command('redrive').description('Bring dead jobs back, oldest first. They keep their ledger.'))
    .option('--attempts <reset|keep>', 'reset gives all attempts again, keep only what was left (default: reset)')
    .option('--dry-run', 'print what would happen, and change nothing')
    .addHelpText('after', '\nWith --json: { ids, skipped: [{ id, why }], missing, dryRun }.')
    .action((ids: string[], flags: RedriveFlags) => redrive(shell, ids, flags));
  selecting(dead.command('discard').description('Delete dead jobs and their ledgers for good.'))
    .addHelpText('after', '\nWith --json: { ids, missing }.')
    .action((ids: string[], flags: SelectionFlags) => discard(shell, ids, flags));
}

function selecting(command: CliCommand): CliCommand {
  return command
    .argument('[ids...]', 'the ids of dead jobs; or choose them by options, which add up')
    .option('--name <name>', 'those of this name')
    .option('--queue <queue>', 'those of this queue')
    .option('--reason <reason>', `those that are dead for this reason: ${deadReasons.join(', ')}`)
    .option('--limit <n>', 'no more than this');
}

async function list({ output, ...shell }: Shell, flags: ListFlags): Promise<void> {
  const limit = readLimit(flags.limit) ?? PAGE;
  const filter = {
    ...given('name', flags.name),
    ...given('queue', flags.queue),
    ...given('after', flags.after),
    limit,
  };
  const jobs = await withExisting(shell.database(), (mulligan) => mulligan.dead.list(filter));
  output.answer({ jobs }, () => (jobs.length === 0 ? ['No dead job matches.'] : jobListLines(jobs, output)));
  const note = pageNote(jobs, limit);
  if (note !== null) output.note(note);
}

async function redrive(shell: Shell, asked: readonly string[], flags: RedriveFlags): Promise<void> {
  const selection = readSelection(asked, flags);
  const dryRun = flags.dryRun === true;
  const attempts = read('attempts', flags.attempts, (text) =>
    checkOneOf(text, ['reset', 'keep'] as const, '--attempts'),
  );
  const { ids, skipped } = await withExisting(shell.database(), (mulligan) =>
    mulligan.dead.redrive({ ...selection, ...attempts, dryRun }),
  );
  const missing = notAmong(asked, [...ids, ...skipped.map(({ id }) => id)]);
  shell.output.answer({ ids, skipped, missing, dryRun }, () => [
    `${dryRun ? 'Would bring back' : 'Brought back'} ${countOf(ids)}.`,
    ...ids.map((id) => `  ${printable(id)}`),
    ...skipped.map(({ id, why }) => `${printable(id)} stays dead: ${refusals[why]}.`),
    ...missingLines(missing),
  ]);
  if (missing.length > 0 || (asked.length > 0 && skipped.length > 0)) shell.exitCode = 1;
}

const refusals: Readonly<Record<RedriveRefusal, string>> = {
  'key-taken': 'a live job holds its key',
  'nothing-left': 'it has no attempt left to keep',
};

async function discard(shell: Shell, asked: readonly string[], flags: SelectionFlags): Promise<void> {
  const selection = readSelection(asked, flags);
  const ids = await withExisting(shell.database(), (mulligan) => mulligan.dead.discard(selection));
  const missing = notAmong(asked, ids);
  shell.output.answer({ ids, missing }, () => [
    `Deleted ${countOf(ids)}.`,
    ...ids.map((id) => `  ${printable(id)}`),
    ...missingLines(missing),
  ]);
  if (missing.length > 0) shell.exitCode = 1;
}

function readSelection(ids: readonly string[], { name, queue, reason, limit }: SelectionFlags): DeadSelection {
  if (ids.length === 0 && name === undefined && queue === undefined && reason === undefined) {
    throw wrongUsage('expected which dead jobs: their ids, --name, --queue or --reason. See mulligan dead list.');
  }
  return {
    ...given('ids', ids.length === 0 ? undefined : ids),
    ...given('name', name),
    ...given('queue', queue),
    ...read('reason', reason, (text) => checkOneOf(text, deadReasons, '--reason')),
    ...given('limit', readLimit(limit)),
  };
}

function countOf(ids: readonly string[]): string {
  return ids.length === 1 ? '1 dead job' : `${ids.length} dead jobs`;
}

function notAmong(asked: readonly string[], found: readonly string[]): string[] {
  const known = new Set(found);
  return asked.filter((id) => !known.has(id));
}

function missingLines(missing: readonly string[]): string[] {
  return missing.map(
    (id) => `${printable(id)} was not among them: it is not dead, or does not exist, or another option left it out.`,
  );
}
