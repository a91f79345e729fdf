import type { Job, RunRecord } from '../job.ts';
import { asideAfter, type Decision } from '../retry/decision.ts';
import type { OutcomeKind, StoredError } from '../retry/outcome.ts';
import type { Output, Style } from './output.ts';
import { type Cell, type Column, tableLines } from './table.ts';
import { iso, span } from './time.ts';

/** How a job's states and a run's outcomes are coloured everywhere. */
export const stateStyles: Readonly<Record<Job['state'], Style>> = {
  scheduled: 'cyan',
  ready: 'cyan',
  running: 'bold',
  retrying: 'yellow',
  completed: 'green',
  dead: 'red',
  cancelled: 'magenta',
};

const outcomeStyles: Readonly<Record<OutcomeKind, Style>> = {
  completed: 'green',
  failed: 'yellow',
  crashed: 'red',
  snoozed: 'cyan',
  released: 'cyan',
  deferred: 'cyan',
  cancelled: 'magenta',
};

const columns: readonly Column[] = [
  { title: 'run', align: 'right' },
  { title: 'attempt', align: 'right' },
  { title: 'started' },
  { title: 'outcome' },
  { title: 'duration', align: 'right' },
  { title: 'error', gives: 'wrapping', max: 300 },
  { title: 'decided', gives: 'wrapping', max: 300 },
  { title: 'next' },
  { title: 'worker', gives: 'shortened', max: 40 },
];

/** The ledger of one job as a table: what happened in each run, what was decided, and why. */
export function ledgerLines(runs: readonly RunRecord[], output: Output): string[] {
  return tableLines(columns, runs.map(ledgerRow), output);
}

function ledgerRow(record: RunRecord): Cell[] {
  const { run, attempt, counted, outcome, startedAt, endedAt, error, decision } = record;
  return [
    run,
    counted ? attempt : 'uncounted',
    iso(startedAt),
    { text: outcome, style: outcomeStyles[outcome] },
    span(endedAt - startedAt),
    error === null ? '-' : errorText(error),
    decidedText(decision),
    nextText(decision),
    record.worker,
  ];
}

export function errorText({ name, message, code, status }: StoredError): string {
  const details = [status === null ? null : `HTTP ${status}`, code].filter(
    (detail) => detail !== null && detail !== undefined,
  );
  return `${name}${details.length === 0 ? '' : ` (${details.join(', ')})`}${message === '' ? '' : `: ${message}`}`;
}

/** Rules that only repeat the decision. */
const saysNothing = ['completed', 'snoozed', 'cancelled'];

/** What was decided, why, and the rule that decided it. */
export function decidedText(decision: Decision): string {
  const note = decision.note === undefined ? '' : `; ${decision.note}`;
  return `${decisionWords(decision)}${saysNothing.includes(decision.rule) ? '' : ` (${decision.rule})`}${note}`;
}

function decisionWords(decision: Decision): string {
  switch (decision.kind) {
    case 'retry':
      return `retry: ${decision.why}`;
    case 'dead':
      return `dead: ${decision.reason}`;
    default:
      return decision.kind;
  }
}

function nextText(decision: Decision): string {
  if (asideAfter(decision) !== null) return 'set aside';
  return 'delayMs' in decision ? `after ${span(decision.delayMs)}` : '-';
}
