import type { BulkResult, OtherJob } from '../bulk/bulk.ts';
import { type Rate, readInterval } from '../bulk/rate.ts';
import { systemClock } from '../clock.ts';
import { printable } from '../printable.ts';
import type { Operation, SkipReason } from '../store/store.ts';
import { jobListLines } from './job-list.ts';
import type { Output } from './output.ts';
import { pointInTime, span } from './time.ts';

/* What a bulk action prints when it has ended, or would do. */

export interface BulkWords {
  /** redriven, discarded */
  readonly done: string;
  /** redrive, discard */
  readonly verb: string;
  /** What is selected: jobs, dead jobs */
  readonly what: string;
  /** Asks before: it cannot be undone. */
  readonly asks: boolean;
  readonly rate?: string | undefined;
  readonly canary?: string | undefined;
  /** What else a dry run has to say of a rate. */
  readonly rateNote?: string;
}

const SHOWN = 20;

export function bulkLines(result: BulkResult, words: BulkWords, output: Output): string[] {
  const { ids, skipped, others, operation, resumed, stopped } = result;
  if (result.dryRun) return dryRunLines(result, words, output);
  const named = skipped.slice(0, SHOWN);
  // The result names some of them, the operation counts all.
  const unnamed = (operation?.skipped ?? 0) - named.length;
  return [
    ...(resumed && operation !== null ? [continuedText('Continued', operation)] : []),
    doneLine(result, words),
    ...(ids.length <= SHOWN ? ids.map((id) => `  ${printable(id)}`) : []),
    ...named.map(({ id, why }) => `${printable(id)} stays as it is: ${skipWords[why]}.`),
    ...(unnamed > 0 ? [`And ${number(unnamed)} more were skipped.`] : []),
    ...othersLines(others),
    ...(stopped === null ? [] : [`Stopped: ${printable(stopped)}`]),
  ];
}

function doneLine({ count, cancelling, dueUntil }: BulkResult, { done, what }: BulkWords): string {
  const now = systemClock.now();
  const spread = dueUntil === null || dueUntil <= now ? '' : `, spread until ${pointInTime(dueUntil, now)}`;
  // Spread jobs are not due now.
  const verb = spread === '' ? done : done.replace(' now:', ':');
  const told =
    cancelling === 0
      ? ''
      : `; ${number(cancelling)} running ${cancelling === 1 ? 'one was' : 'ones were'} told to stop`;
  return `${verb[0]?.toUpperCase()}${verb.slice(1)} ${countOf(count - cancelling, what)}${spread}${told}.`;
}

function dryRunLines(result: BulkResult, words: BulkWords, output: Output): string[] {
  const { verb, what, rate, canary, rateNote = '' } = words;
  const { count, isExact, samples, others, operation } = result;
  const many = `${isExact ? '' : 'at least '}${countOf(count, what)}`;
  const first = canary === undefined ? '' : `, ${canary} of them first, and the rest only when these have completed`;
  const tookMs =
    rate === undefined ? 0 : Math.max(0, count - 1 - Number(canary ?? 0)) * readInterval(rate as Rate, '--rate');
  const spread = rate === undefined ? '' : `, spread over ${span(tookMs)} at ${rate}${rateNote}`;
  const end = samples.length === 0 ? '.' : count > samples.length ? ', such as:' : ':';
  const listed = samples.length === 0 ? [] : jobListLines(samples, output);
  return [
    ...(operation === null
      ? []
      : [`${continuedText('Would continue', operation)} It has changed ${number(operation.changed)} so far.`]),
    `Would ${verb} ${many}${first}${spread}${end}`,
    ...listed,
    ...othersLines(others),
  ];
}

function continuedText(done: string, { by, startedAt }: Operation): string {
  return `${done} what ${printable(by)} began at ${new Date(startedAt).toISOString()}; jobs that came since are left alone.`;
}

const skipWords: Readonly<Record<SkipReason, string>> = {
  'key-taken': 'a live job holds its key',
  'nothing-left': 'it has no attempt left to keep',
  'due-sooner': 'it is due before its turn at this rate',
};

const commandFor: Readonly<Record<string, string>> = {
  'dead.redrive': 'mulligan dead redrive',
  'jobs.runNow': 'mulligan jobs run-now',
  enqueue: 'mulligan enqueue for a new job',
};

function othersLines(others: readonly OtherJob[]): string[] {
  const shown = others.slice(0, SHOWN).map(({ id, state, use }) => {
    if (state === 'not-found') return `${printable(id)} does not exist.`;
    if (state === 'not-selected') return `${printable(id)} was left alone: another option left it out.`;
    return `${printable(id)} is ${state}.${use === null ? '' : ` Use ${commandFor[use] ?? use}.`}`;
  });
  return others.length > SHOWN ? [...shown, `And ${number(others.length - SHOWN)} more.`] : shown;
}

export function number(value: number): string {
  return value.toLocaleString('en-US');
}

export function countOf(count: number, what: string): string {
  return `${number(count)} ${count === 1 ? what.replace(/s$/, '') : what}`;
}
