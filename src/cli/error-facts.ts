import { systemClock } from '../clock.ts';
import type { ErrorHistory } from '../observe/error-history.ts';
import { printable } from '../printable.ts';
import type { ErrorGroup } from '../store/error-groups.ts';
import { errorText } from './ledger.ts';
import type { Output } from './output.ts';
import { plotColumns } from './plot.ts';
import { factLines, tableLines } from './table.ts';
import { fromNow, pointInTime, span } from './time.ts';

const NAMES_LISTED = 2;

/** Error groups as a table. */
export function groupListLines(groups: readonly ErrorGroup[], output: Output): string[] {
  const now = systemClock.now();
  return tableLines(
    [
      { title: 'fingerprint' },
      { title: 'dead', align: 'right' },
      { title: 'failing', align: 'right' },
      { title: 'recovered', align: 'right' },
      { title: 'first seen', align: 'right' },
      { title: 'last seen', align: 'right' },
      { title: 'jobs', gives: 'shortened', max: 40 },
      { title: 'error', gives: 'shortened', max: 80 },
    ],
    groups.map((group) => [
      group.fingerprint,
      { text: String(group.dead), ...(group.dead > 0 && { style: 'red' }) },
      { text: String(group.failing), ...(group.failing > 0 && { style: 'yellow' }) },
      group.recoveredShare === null ? '-' : percent(group.recoveredShare),
      fromNow(group.firstSeenAt, now),
      fromNow(group.lastSeenAt, now),
      namesText(group),
      group.sample === null ? '-' : errorText(group.sample.error),
    ]),
    output,
  );
}

function namesText({ names }: ErrorGroup): string {
  const distinct = [...new Set(names.map(({ name }) => name))];
  const more = distinct.length - NAMES_LISTED;
  return distinct.slice(0, NAMES_LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

export function groupFacts(group: ErrorGroup, history: ErrorHistory, output: Output): string[] {
  const now = systemClock.now();
  const { redriven, recurred } = group;
  return factLines(
    [
      ['fingerprint', group.fingerprint],
      ['error', group.sample === null ? '-' : errorText(group.sample.error)],
      ['now', `${group.dead} dead, ${group.failing} failing`],
      ['in all', `${plural(group.failures, 'failed run')} of ${plural(group.jobs, 'job')}`],
      ['recovered', recoveredText(group)],
      ['redriven', redriven === 0 ? 'none so far' : `${redriven} times, of which ${recurred} failed with it again`],
      ['last 24h', overTime(history)],
      ['first seen', pointInTime(group.firstSeenAt, now)],
      ['last seen', pointInTime(group.lastSeenAt, now)],
    ],
    output,
  );
}

/** Failures as columns between two bars, so that it is seen where nothing failed. */
function overTime({ series, stepMs, from, to }: ErrorHistory): string {
  const steps = Array.from({ length: (to - from) / stepMs }, (_, step) =>
    series.reduce((sum, { failures }) => sum + (failures[step] ?? 0), 0),
  );
  const most = Math.max(0, ...steps);
  if (most === 0) return 'no failure counted';
  return `|${plotColumns(steps)}| up to ${plural(most, 'failed run')} in ${span(stepMs)}`;
}

function recoveredText({ recovered, recoveredShare, recoveredAt }: ErrorGroup): string {
  if (recoveredShare === null) return 'none so far: all jobs that failed with it are failing still';
  const attempts = recoveredAt.map(({ attempt, jobs }) => `${jobs} at attempt ${attempt}`);
  const share = `${plural(recovered, 'job')}, ${percent(recoveredShare)} of those that do not fail any more`;
  return attempts.length === 0 ? share : `${share} (${attempts.join(', ')})`;
}

function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}

export function nameLines({ names }: ErrorGroup, output: Output): string[] {
  const table = tableLines(
    [
      { title: 'job', gives: 'shortened' },
      { title: 'queue', gives: 'shortened' },
      { title: 'dead', align: 'right' },
      { title: 'failing', align: 'right' },
      { title: 'failed runs', align: 'right' },
    ],
    names.map(({ name, queue, dead, failing, failures }) => [name, queue, dead, failing, failures]),
    output,
  );
  return ['', ...table];
}

/** The first error of the group, with its stack. */
export function sampleLines({ sample }: ErrorGroup, output: Output): string[] {
  if (sample === null) return [];
  const { stack, issues = [] } = sample.error;
  const frames = (stack ?? '').split('\n').filter((line) => line !== '');
  return [
    '',
    output.paint('dim', `the first of them: job ${printable(sample.jobId)}`),
    ...frames.map((line) => `  ${printable(line.trim())}`),
    ...issues.map(({ path, message }) => `  ${printable(path)}: ${printable(message)}`),
  ];
}

/** Commands for what can be done about the group as it is now. */
export function adviceLines({ fingerprint, dead, failing, recurred, redriven }: ErrorGroup, output: Output): string[] {
  const error = `--error ${fingerprint}`;
  const commands: [string, string][] = [[`mulligan jobs list ${error}`, 'see its jobs']];
  if (failing > 0) {
    // Not those that are scheduled: a redrive with a rate has spread them.
    const command = `mulligan jobs run-now --state retrying ${error} --rate 50/s`;
    commands.push([command, 'let those that wait for a retry run now, after a fix']);
  }
  if (dead > 0) {
    commands.push([`mulligan dead redrive ${error} --dry-run`, 'see what a redrive would bring back']);
    commands.push([
      `mulligan dead redrive ${error} --canary 10 --rate 50/s`,
      'bring ten back, and the rest if they complete',
    ]);
  }
  const warning =
    redriven > 0 && recurred * 2 >= redriven
      ? ['', 'Most redriven jobs of this group failed with it again: the cause is probably not mended yet.']
      : [];
  return [
    ...warning,
    '',
    output.paint('dim', 'what you can do'),
    ...factLines(commands, output).map((line) => `  ${line}`),
  ];
}
