import { states } from '../job.ts';
import type { GateInfo } from '../observe/gate-info.ts';
import type { RetryStats, Stats } from '../observe/stats.ts';
import { printable } from '../printable.ts';
import type { CliCommand, Shell } from './command.ts';
import { withExisting } from './database.ts';
import { wrongUsage } from './failure.ts';
import { percent } from './figures.ts';
import { isNotable, stateText } from './gate-facts.ts';
import { type HistoryFlags, historyLines, historyOptions } from './history.ts';
import type { Output } from './output.ts';
import { factLines, tableLines } from './table.ts';

const MOST_GATES = 10;

export function addStats(program: CliCommand, shell: Shell): void {
  program
    .command('stats')
    .description('Totals of jobs, runs and retries since the database was created; with --last, runs over time.')
    .option('--last <duration>', 'runs of this long, step by step and by job name, such as 1h, 24h or 30d')
    .option('--step <duration>', 'with --last: the length of a step, in whole minutes')
    .option('--name <name>', 'with --last: only jobs of this name')
    .addHelpText(
      'after',
      '\nfailed, with --last: runs that failed, crashed, or were deferred by a gate; these count no attempt, and are no retries.' +
        '\nWith --json: { totalRetries, successfulRetries, retrySuccessRate, states, totals, queues, names }.' +
        '\nWith --last and --json: { from, to, stepMs, now, upTo, total, points, names, others }.',
    )
    .action((flags: HistoryFlags) =>
      flags.last === undefined ? stats(shell, flags) : overTime(shell, flags.last, flags),
    );
}

async function overTime({ output, ...shell }: Shell, last: string, flags: HistoryFlags): Promise<void> {
  const options = historyOptions({ ...flags, last }, output.isJson);
  const history = await withExisting(shell.database(), (mulligan) => mulligan.history(options));
  output.answer(history, () => historyLines(history, output));
}

async function stats({ output, ...shell }: Shell, { step, name }: HistoryFlags): Promise<void> {
  if (step !== undefined || name !== undefined) {
    throw wrongUsage(`--${step === undefined ? 'name' : 'step'} goes with --last, such as --last 24h.`);
  }
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
