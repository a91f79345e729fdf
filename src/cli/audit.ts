import { systemClock } from '../clock.ts';
import { printable, printableJson } from '../printable.ts';
import type { Operation } from '../store/store.ts';
import { number } from './bulk-lines.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { given, readInteger } from './flags.ts';
import { tableLines } from './table.ts';
import { fromNow } from './time.ts';

const PAGE = 50;

export function addAudit(program: CliCommand, shell: Shell): void {
  const audit = program.command('audit').description('What operators did: who, what, when, and to how many jobs.');
  audit
    .command('list')
    .description('Bulk actions, and orders to queues, gates, limits and schedules, newest first. Kept for 90 days.')
    .option('--limit <n>', `how many (default: ${PAGE})`)
    .addHelpText('after', '\nWith --json: { operations: [...] }, times in ms since the epoch.')
    .action((flags: { readonly limit?: string }) => list(shell, flags));
  audit
    .command('stop')
    .description('End a bulk action that is not finished. What it has changed stays so.')
    .argument('<id>', 'its id, or how it begins, from audit list')
    .option('--by <who>', 'who ends it, for the audit (default: user@host)')
    .addHelpText('after', '\nWith --json: { operation }.')
    .action((id: string, flags: { readonly by?: string }) => stop(shell, id, flags));
}

async function list({ output, ...shell }: Shell, flags: { readonly limit?: string }): Promise<void> {
  const limit = flags.limit === undefined ? PAGE : readInteger(flags.limit, '--limit', { min: 1, max: 10_000 });
  const operations = await withExisting(shell.database(), (mulligan) => mulligan.audit.list({ limit }));
  output.answer({ operations }, () => {
    if (operations.length === 0) return ['No action is on record.'];
    const now = systemClock.now();
    const table = tableLines(
      [
        { title: 'when', align: 'right' },
        { title: 'action' },
        { title: 'by', gives: 'shortened', max: 60 },
        { title: 'state' },
        { title: 'changed', align: 'right' },
        { title: 'skipped', align: 'right' },
        { title: 'selection', gives: 'shortened', max: 60 },
        { title: 'options', gives: 'shortened', max: 40 },
        { title: 'note', gives: 'wrapping', max: 200 },
      ],
      operations.map((one) => [
        fromNow(one.startedAt, now),
        one.action,
        byText(one),
        stateOf(one, now),
        number(one.changed),
        number(one.skipped),
        printableJson(one.selection),
        optionsText(one),
        one.note ?? '-',
      ]),
      output,
    );
    return [...table, ...unfinishedLines(operations)];
  });
}

async function stop({ output, ...shell }: Shell, id: string, flags: { readonly by?: string }): Promise<void> {
  const operation = await withExisting(shell.database(), ({ audit }) => audit.stop(id, given('by', flags.by)));
  output.answer({ operation }, () => [
    `The operation is ${operation.state}${operation.note === null ? '' : `: ${printable(operation.note)}`}. It changed ${number(operation.changed)} jobs.`,
  ]);
}

function byText({ by, options }: Operation): string {
  return options?.continuedBy == null ? by : `${by}, continued by ${options.continuedBy}`;
}

function optionsText({ options }: Operation): string {
  if (options === null) return '-';
  const { canary, keepAttempts, rate } = options;
  const given = [
    canary > 0 && `--canary ${canary}`,
    rate !== null && `--rate ${rate}`,
    keepAttempts && '--keep-attempts',
  ];
  return given.filter((flag) => flag !== false).join(' ') || '-';
}

/** One that was interrupted is running on record until it is continued or stopped: its last progress tells. */
function stateOf({ state, updatedAt }: Operation, now: number): { text: string; style?: 'green' | 'yellow' | 'red' } {
  const styles = { running: 'yellow', done: 'green', stopped: 'red' } as const;
  const progress = state === 'running' ? `, last progress ${fromNow(updatedAt, now)}` : '';
  return { text: `${state}${progress}`, style: styles[state] };
}

const UNFINISHED_NAMED = 5;

function unfinishedLines(operations: readonly Operation[]): string[] {
  const unfinished = operations.filter(({ endedAt }) => endedAt === null).slice(0, UNFINISHED_NAMED);
  if (unfinished.length === 0) return [];
  return [
    '',
    'Not finished. The same command, given again, continues it; this ends it:',
    ...unfinished.map(({ id }) => `  mulligan audit stop ${id}`),
  ];
}
