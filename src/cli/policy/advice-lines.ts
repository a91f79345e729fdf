import type { Advice, AttemptRow, GroupAdvice, NameAdvice, Proposal } from '../../advise/index.ts';
import { choiceText, counted, errorText, percent } from '../../advise/words.ts';
import { printable } from '../../printable.ts';
import type { Output } from '../output.ts';
import { tableLines } from '../table.ts';
import { span } from '../time.ts';

/** Advice for people. */
export function adviceLines(advice: Advice, output: Output): string[] {
  const { names } = advice;
  if (names.length === 0) return [...ledgerLines(advice), 'No job has ended in that time: nothing is proposed.'];
  return [...ledgerLines(advice), ...names.flatMap((one) => ['', ...nameLines(one, advice, output)])];
}

/** A ledger that reaches back for less than this share of the time is young. */
const YOUNG = 0.9;

function ledgerLines({ now, since, isPruned, oldestAt, read, jobs, isSampled }: Advice): string[] {
  const isYoung = oldestAt !== null && now - oldestAt < YOUNG * (now - since);
  const reach = `${span(now - since)}${isYoung ? ` (the first of these jobs ended ${span(now - oldestAt)} ago)` : ''}`;
  return [
    isSampled
      ? `The last ${reach}: about ${amount(jobs, 'ended job')}, of which ${counted(read)} were drawn at random.`
      : `The last ${reach}: ${amount(jobs, 'ended job')}, all of them read.`,
    ...(isPruned
      ? [`Completed jobs that ended before were deleted. Keep them for longer with retention: { completed: '30d' }.`]
      : []),
  ];
}

function nameLines(advice: NameAdvice, { isSampled }: Advice, output: Output): string[] {
  const { name, jobs, failed, retries, attempts, groups, tooSmall } = advice;
  const title = output.paint('bold', printable(name));
  if (failed === 0) return [`${title}: ${amount(jobs, 'job')}, none of which failed.`];
  const recovered = `${amount(retries.recovered, 'job')} recovered`;
  return [
    `${title}: ${amount(jobs, 'job')}, of which ${counted(failed)} failed at least once.`,
    `Retries took ${amount(retries.runs, 'run')} and ${span(retries.runMs)} of run time, and ${recovered}.`,
    ...(attempts.length === 0 ? [] : ['', ...attemptLines(attempts, isSampled, output)]),
    ...(groups.length < 2 && groups[0]?.error === null ? [] : ['', ...groupLines(groups, output)]),
    '',
    ...(tooSmall === null ? [] : [`Too small a ledger: ${tooSmall}`]),
    ...proposalLines(advice),
  ];
}

function amount(number: number, what: string): string {
  return `${counted(number)} ${what}${number === 1 ? '' : 's'}`;
}

function proposalLines(advice: NameAdvice): string[] {
  const { proposals, tooFew, tooSmall } = advice;
  const choice = choiceLines(advice);
  const saving = proposals.filter(({ runsSaved }) => runsSaved > 0).length + choice.length;
  return [
    ...(proposals.length > 0 ? ['Proposals', ...proposals.map(proposalLine)] : []),
    ...(proposals.length === 0 && tooSmall === null ? [nothingLine(tooFew)] : []),
    ...(tooFew.length === 0 ? [] : ['Too few jobs to propose it', ...tooFew.map((text) => `  - ${printable(text)}`)]),
    ...choice,
    ...(saving > 1 ? ['Savings may be of the same runs: do not add them up.'] : []),
  ];
}

function proposalLine({ text, withdrawn }: Proposal): string {
  return `  - ${withdrawn === undefined ? '' : `Withdrawn (${withdrawn}): `}${printable(text)}`;
}

function nothingLine(tooFew: readonly string[]): string {
  return tooFew.length === 0
    ? 'Nothing to change: no setting would have saved runs without losing jobs.'
    : 'Nothing is proposed.';
}

/** So many of the jobs that failed may be worth less than the runs they cost; a person decides that. */
const FEW_LOST = 0.01;

function choiceLines({ choices, failed, proposals, policy }: NameAdvice): string[] {
  const lossless = proposals.find(({ setting }) => setting !== 'classification')?.maxAttempts ?? policy.maxAttempts;
  const choice = choices.find(({ jobsLost }) => jobsLost <= FEW_LOST * failed);
  if (choice === undefined || choice.runsSaved === 0 || choice.jobsLost === 0 || choice.maxAttempts >= lossless)
    return [];
  return [`If a few jobs may be lost: ${choiceText(choice, failed)}`];
}

function attemptLines(attempts: readonly AttemptRow[], isSampled: boolean, output: Output): string[] {
  return tableLines(
    [
      { title: 'attempt', align: 'right' },
      { title: 'tried', align: 'right' },
      { title: 'succeeded', align: 'right' },
      { title: 'share', align: 'right' },
      ...(isSampled ? [{ title: '95 % sure', align: 'right' as const }] : []),
      { title: 'after', align: 'right' },
    ],
    attempts.map(({ attempt, tried, succeeded, share, low, high, afterMs }) => [
      attempt,
      counted(tried),
      counted(succeeded),
      percent(share),
      ...(isSampled ? [`${percent(low)} to ${percent(high)}`] : []),
      afterMs === null ? '-' : span(afterMs),
    ]),
    output,
  );
}

function groupLines(groups: readonly GroupAdvice[], output: Output): string[] {
  return tableLines(
    [
      { title: 'error group' },
      { title: 'jobs', align: 'right' },
      { title: 'recovered', align: 'right' },
      { title: 'succeeded at attempt', gives: 'shortened' },
      { title: 'error', gives: 'shortened' },
    ],
    groups.map(({ fingerprint, error, jobs, recovered, attempts }) => [
      fingerprint,
      counted(jobs),
      counted(recovered),
      attempts
        .filter(({ succeeded }) => succeeded > 0)
        .map(({ attempt, share }) => `${attempt}: ${percent(share)}`)
        .join(', ') || 'never',
      error === null ? '-' : errorText(error),
    ]),
    output,
  );
}
