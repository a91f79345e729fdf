import { formatDuration } from '../../duration.ts';
import { LONGEST_DELAY_MS } from '../../retry/backoff.ts';
import type { Backoff, Jitter, RetryPolicy } from '../../retry/policy.ts';
import { grouped } from '../figures.ts';
import { span } from '../time.ts';
import { type ForecastTotals, totalsOf, type Wait } from './forecast.ts';
import { type LikelyTotals, likelyTotals } from './likely.ts';

/** A policy on one line. */
export function policySummary(policy: RetryPolicy): string {
  const { maxAttempts, backoff, jitter, deadlineMs } = policy;
  if (maxAttempts === 1) return '1 attempt, never retried';
  const deadline = deadlineMs === null ? '' : `; deadline ${formatDuration(deadlineMs)}`;
  return `${maxAttempts} attempts; ${backoffWords(backoff)}; jitter ${jitterName(jitter)}${deadline}`;
}

export function backoffWords(backoff: Backoff): string {
  const limit =
    'maxMs' in backoff && backoff.maxMs < LONGEST_DELAY_MS ? `, at most ${formatDuration(backoff.maxMs)}` : '';
  switch (backoff.kind) {
    case 'exponential':
      return `exponential: ${formatDuration(backoff.baseMs)}, times ${backoff.factor} each time${limit}`;
    case 'linear':
      return `linear: ${formatDuration(backoff.baseMs)} more each time${limit}`;
    case 'fibonacci':
      return `fibonacci: ${formatDuration(backoff.baseMs)} times 1, 1, 2, 3, 5, ...${limit}`;
    case 'fixed':
      return `fixed: ${formatDuration(backoff.baseMs)} each time`;
    case 'table':
      return `table: ${backoff.delaysMs.map(formatDuration).join(', ')}, the last one repeating`;
  }
}

export function jitterName(jitter: Jitter): string {
  return typeof jitter === 'string' ? jitter : `spread ${jitter.spread}`;
}

function jitterWords(jitter: Jitter): string {
  switch (jitter) {
    case 'none':
      return 'No jitter: jobs that fail together are retried together.';
    case 'full':
      return 'Full jitter: each wait is drawn at random from zero to the whole delay, so that jobs that fail together are retried at different times.';
    case 'equal':
      return 'Equal jitter: half of each delay is fixed, the other half is drawn at random.';
    case 'decorrelated':
      return 'Decorrelated jitter: each wait is drawn from the base to three times the wait before, whatever the backoff is.';
    default:
      return `Spread ${jitter.spread}: each wait is up to ${Math.round(jitter.spread * 100)} % shorter or longer, never beyond the maximum.`;
  }
}

const MOST_LISTED = 8;

/** What a policy will do, in sentences. `waits` are all it has. */
export function explainLines(name: string, policy: RetryPolicy, waits: readonly Wait[]): string[] {
  const { maxAttempts, backoff, jitter } = policy;
  if (maxAttempts === 1) {
    return [`${name}: a job is tried once and never retried.`, '', 'It gives up', ...givesUp(policy, waits)];
  }
  const listed = waits.slice(0, MOST_LISTED).map(({ delayMs }) => span(delayMs));
  const retries = maxAttempts === 2 ? '1 retry' : `${maxAttempts - 1} retries`;
  return [
    `${name}: a job is tried up to ${maxAttempts} times, the first attempt and ${retries}.`,
    `Between them it waits ${listed.join(', ')}${waits.length > MOST_LISTED ? ', ...' : ''} (${backoffWords(backoff)}).`,
    jitterWords(jitter),
    totalWords(jitter, totalsOf(waits), likelyTotals(policy, waits.length)),
    'The time the attempts take comes on top, and a Retry-After makes a wait longer, never shorter.',
    '',
    'It gives up',
    ...givesUp(policy, waits),
  ];
}

/** How long jobs are kept trying, jitter included. */
export function likelyWords({ soonestMs, latestMs }: LikelyTotals): string {
  return soonestMs === latestMs ? span(soonestMs) : `${span(soonestMs)} to ${span(latestMs)}`;
}

function totalWords(jitter: Jitter, totals: ForecastTotals, likely: LikelyTotals): string {
  const { totalMs, shortestTotalMs, longestTotalMs } = totals;
  if (jitter === 'none') return `The waits add up to ${span(totalMs)}, always.`;
  return `The waits add up to ${span(totalMs)} before jitter; with it, from ${likelyWords(likely)} for 98 of 100 jobs, and anything from ${span(shortestTotalMs)} to ${span(longestTotalMs)} at worst.`;
}

function givesUp({ maxAttempts, maxCrashes, maxRuns, deadlineMs }: RetryPolicy, waits: readonly Wait[]): string[] {
  const crashing = maxCrashes === 1 ? 'a run takes' : `${maxCrashes} runs take`;
  return [
    `  - when attempt ${maxAttempts} fails: dead, exhausted;`,
    '  - at once when an error is permanent (Unrecoverable, a rejected input, most HTTP 4xx): dead, unrecoverable;',
    // With fewer attempts than that, it is exhausted before.
    ...(maxCrashes > maxAttempts ? [] : [`  - when ${crashing} the worker process down: dead, poison;`]),
    `  - after ${grouped(maxRuns)} runs in all, when an outage, a gate or a release would give one more back: dead, runs;`,
    deadlineMs === null ? '  - never for its age: there is no deadline.' : deadlineWords(deadlineMs, waits),
  ];
}

function deadlineWords(deadlineMs: number, waits: readonly Wait[]): string {
  let elapsedMs = 0;
  const fitting = waits.filter(({ delayMs }) => {
    elapsedMs += delayMs;
    return elapsedMs <= deadlineMs;
  });
  const cut =
    fitting.length < waits.length ? ` Before jitter that is after attempt ${fitting.length + 1} already.` : '';
  return `  - when the next attempt would begin more than ${formatDuration(deadlineMs)} after the first: dead, deadline.${cut}`;
}
