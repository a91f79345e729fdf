import { systemClock } from '../clock.ts';
import type { Operation } from '../store/store.ts';
import { number } from './bulk.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { readInteger } from './flags.ts';
import { printableJson } from './printable.ts';
import { tableLines } from './table.ts';
import { fromNow } from './time.ts';

const PAGE = 50;

export function addOperations(program: CliCommand, shell: Shell): void {
  const operations = program.command('operations').description('The record of bulk actions: who did what, and when.');
  operations
    .command('list')
    .description('Bulk actions, newest first. They are kept for 90 days.')
    .option('--limit <n>', `how many (default: ${PAGE})`)
    .addHelpText('after', '\nWith --json: { operations: [...] }, times in ms since the epoch.')
    .action((flags: { readonly limit?: string }) => list(shell, flags));
}

async function list({ output, ...shell }: Shell, flags: { readonly limit?: string }): Promise<void> {
  const limit = flags.limit === undefined ? PAGE : readInteger(flags.limit, '--limit', { min: 1, max: 10_000 });
  const operations = await withExisting(shell.database(), (mulligan) => mulligan.operations.list({ limit }));
  output.answer({ operations }, () => {
    if (operations.length === 0) return ['No bulk action is on record.'];
    const now = systemClock.now();
    return tableLines(
      [
        { title: 'when', align: 'right' },
        { title: 'action' },
        { title: 'by', gives: 'shortened', max: 30 },
        { title: 'state' },
        { title: 'changed', align: 'right' },
        { title: 'skipped', align: 'right' },
        { title: 'selection', gives: 'shortened', max: 60 },
        { title: 'note', gives: 'wrapping', max: 200 },
      ],
      operations.map((one) => [
        fromNow(one.startedAt, now),
        one.action,
        one.by,
        stateOf(one),
        number(one.changed),
        number(one.skipped),
        printableJson(one.selection),
        one.note ?? '-',
      ]),
      output,
    );
  });
}

function stateOf({ state }: Operation): { text: string; style?: 'green' | 'yellow' | 'red' } {
  const styles = { running: 'yellow', done: 'green', stopped: 'red' } as const;
  return { text: state, style: styles[state] };
}
