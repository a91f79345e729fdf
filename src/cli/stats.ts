import { states } from '../job.ts';
import type { GateInfo } from '../observe/gate-info.ts';
import type { RetryStats, Stats } from '../observe/stats.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { isNotable, stateText } from './gate-facts.ts';
import type { Output } from './output.ts';
import { printable } from './printable.ts';
import { factLines, tableLines } from './table.ts';

const MOST_GATES = 10;

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
  const { all, gates } = await withExisting(shell.database(), async (mulligan) => ({
    all: await mulligan.stats(),
    gates: await mulligan.gates.list({ limit: MOST_GATES }),
  }));
  output.answer(all, () => [
    ...totalsLines(all, output),
    ...groupLines('queue', all.queues, output),
    ...groupLines('name', all.names, output),
    ...gateLines(gates),
  ]);
}

/** Jobs that wait behind a gate look stuck to a reader of these numbers. */
function gateLines(gates: readonly GateInfo[]): string[] {
  const notable = gates.filter(isNotable);
  if (notable.length === 0) return [];
  const listed = notable.map((gate) => printable(`${gate.name} (${stateText(gate)})`)).join(', ');
  return ['', `Gates to look at: ${listed}. See mulligan gates list.`];
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
