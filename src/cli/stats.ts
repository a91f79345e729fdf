import { states } from '../job.ts';
import type { RetryStats, Stats } from '../observe/stats.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import type { Output } from './output.ts';
import { factLines, tableLines } from './table.ts';

export function addStats(program: CliCommand, shell: Shell): void {
  program
    .command('stats')
    .description('Totals of jobs, runs and retries since the database was created.')
    .addHelpText(
      'after',
      '\nWith --json: { totalRetries, successfulRetries, retrySuccessRate, states, totals, queues, names }.',
    )
    .action(() => stats(shell));
}

async function stats({ output, ...shell }: Shell): Promise<void> {
  const all = await withExisting(shell.database(), (mulligan) => mulligan.stats());
  output.answer(all, () => [
    ...totalsLines(all, output),
    ...groupLines('queue', all.queues, output),
    ...groupLines('name', all.names, output),
  ]);
}

/** How many retries succeed, and the totals behind it. */
export function totalsLines(all: Stats, output: Output): string[] {
  return factLines(
    [
      ['totalRetries', `${all.totalRetries} (counted runs that were not their job's first attempt)`],
      ['successfulRetries', `${all.successfulRetries} (those of them that completed their job)`],
      ['retrySuccessRate', `${percent(all.retrySuccessRate)} of retries succeeded`],
      ['runs', nonZero(all.totals.runs)],
      ['jobs', nonZero(all.states)],
      ['dead by reason', nonZero(all.totals.dead)],
    ],
    output,
  );
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(1).replace(/\.0$/, '')} %`;
}

function nonZero(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  return parts.length === 0 ? 'none' : parts.map(([what, count]) => `${count} ${what}`).join(', ');
}

function groupLines(what: string, groups: Readonly<Record<string, RetryStats>>, output: Output): string[] {
  const rows = Object.entries(groups).map(([group, own]) => [
    group,
    ...states.map((state) => own.states[state]),
    own.totalRetries,
    own.totalRetries === 0 ? '-' : percent(own.retrySuccessRate),
  ]);
  if (rows.length === 0) return [];
  const numbers = [...states, 'retries', 'retry success'].map((title) => ({ title, align: 'right' as const }));
  return ['', ...tableLines([{ title: what, gives: 'shortened', max: 40 }, ...numbers], rows, output)];
}
