import { checkOneOf } from '../config.ts';
import { type GroupState, groupStates } from '../store/error-groups.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { adviceLines, groupFacts, groupListLines, nameLines, sampleLines } from './error-facts.ts';
import { given, read, readInteger } from './flags.ts';
import { readMoment } from './selection.ts';
import { unknownError } from './which-jobs.ts';

const PAGE = 20;
const LARGEST_PAGE = 1_000;
/** How far back failures are drawn. */
const SHOWN = '24h';

interface ListFlags {
  readonly name?: string;
  readonly queue?: string;
  readonly state?: string;
  readonly since?: string;
  readonly limit?: string;
}

export function addErrors(program: CliCommand, shell: Shell): void {
  const errors = program.command('errors').description('See what jobs fail with: errors of one kind are one group.');
  errors
    .command('list')
    .description('Error groups, those with the most failing and dead jobs first.')
    .option('--name <name>', 'only jobs of this name')
    .option('--queue <queue>', 'only jobs that were enqueued in this queue')
    .option('--state <state>', `only groups that have such jobs now: ${groupStates.join(' or ')}`)
    .option('--since <time>', 'only groups that were seen since: 2h ago, or 2026-01-31T12:00Z')
    .option('--limit <n>', `how many (default: ${PAGE})`)
    .addHelpText('after', '\nWith --json: { groups: [...] }, times in ms since the epoch.')
    .action((flags: ListFlags) => list(shell, flags));
  errors
    .command('show')
    .description(
      'One error group: its failures of the last 24 hours, a sample with its stack, the jobs in it, how many recovered, and what you can do.',
    )
    .argument('<fingerprint>', 'its fingerprint, or the start of it')
    .addHelpText(
      'after',
      '\nWith --json: { group, history }, times in ms since the epoch. history has the failures of the last 24 hours, step by step.',
    )
    .action((fingerprint: string) => show(shell, fingerprint));
}

async function list({ output, ...shell }: Shell, flags: ListFlags): Promise<void> {
  const limit = flags.limit === undefined ? PAGE : readInteger(flags.limit, '--limit', { min: 1, max: LARGEST_PAGE });
  const options = {
    ...given('name', flags.name),
    ...given('queue', flags.queue),
    ...read('state', flags.state, (text): GroupState => checkOneOf(text, groupStates, '--state')),
    ...read('since', flags.since, (text) => readMoment(text, '--since')),
    limit,
  };
  const groups = await withExisting(shell.database(), (mulligan) => mulligan.errors.list(options));
  output.answer({ groups }, () => (groups.length === 0 ? ['No error group matches.'] : groupListLines(groups, output)));
  if (groups.length === limit) output.note(`There may be more: --limit shows up to ${LARGEST_PAGE}.`);
}

async function show({ output, ...shell }: Shell, fingerprint: string): Promise<void> {
  const { group, history } = await withExisting(shell.database(), async ({ errors }) => {
    const found = await errors.show(fingerprint);
    if (found === null) throw unknownError(fingerprint);
    return { group: found, history: await errors.history({ error: found.fingerprint, from: SHOWN }) };
  });
  output.answer({ group, history }, () => [
    ...groupFacts(group, history, output),
    ...nameLines(group, output),
    ...sampleLines(group, output),
    ...adviceLines(group, output),
  ]);
}
