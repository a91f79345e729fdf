import { backoffDelay } from '../../../src/retry/backoff.ts';
import type { Backoff, Jitter } from '../../../src/retry/policy.ts';
import type { Job, RunRecord } from '../../client/answers.ts';
import { number, span } from '../../components/format.ts';

/** What was decided after a run and by which rule, in a sentence. */
export function decisionWords({ policy }: Pick<Job, 'policy'>, record: RunRecord): string {
  const { decision, attempt } = record;
  switch (decision.kind) {
    case 'complete':
      return 'Completed.';
    case 'cancel':
      return 'Cancelled, as it was told to stop.';
    case 'dead':
      return `Dead: ${deadWords[decision.reason]} (${decision.rule}).`;
    case 'defer':
      return `The dependency is down, so this attempt does not count; again after ${span(decision.delayMs)} (${decision.rule}).`;
    case 'snooze':
      return `It put itself off for ${span(decision.delayMs)}; this does not count.`;
    case 'release':
      return `Handed back, uncounted (${decision.rule})${decision.delayMs > 0 ? `; again after ${span(decision.delayMs)}` : ''}.`;
    case 'retry':
      break;
  }
  const of = `attempt ${attempt} of ${policy.maxAttempts}`;
  switch (decision.why) {
    case 'retry-after':
      return `Retry, ${of}: the other side asked for a wait, so ${milliseconds(decision.delayMs)} (${decision.rule}).`;
    case 'crash':
      return `Its process died (${decision.rule}), ${of}: again after ${milliseconds(decision.delayMs)}.`;
    case 'verdict':
      return `The last attempt waits until its gate has judged whether there is an outage: ${milliseconds(decision.delayMs)}.`;
    default: {
      const whole = backoffDelay(policy.backoff, attempt);
      const rule = decision.rule === 'default' ? '' : ` (${decision.rule})`;
      return `Retry: ${policy.backoff.kind}, ${of}: ${milliseconds(whole)}, ${jitterWords(policy.jitter)} ${milliseconds(decision.delayMs)}${rule}.`;
    }
  }
}

const deadWords = {
  exhausted: 'all attempts are spent',
  unrecoverable: 'retrying cannot help',
  deadline: 'the next attempt would come after its deadline',
  poison: 'it took its process down too often',
  'no-handler': 'no worker knows it',
  runs: 'it was run again too often without an attempt spent',
} as const;

function milliseconds(ms: number): string {
  return ms < 10_000 ? `${number(ms)} ms` : span(ms);
}

function jitterWords(jitter: Jitter): string {
  if (typeof jitter === 'object') return `spread ${jitter.spread} gave`;
  return jitter === 'none' ? 'no jitter:' : `${jitter} jitter gave`;
}

/** A policy on one line. */
export function policyWords({ maxAttempts, backoff, jitter, deadlineMs }: Job['policy']): string {
  if (maxAttempts === 1) return '1 attempt, never retried';
  const deadline = deadlineMs === null ? '' : `, deadline ${span(deadlineMs)}`;
  return `${maxAttempts} attempts, ${backoffWords(backoff)}, ${typeof jitter === 'string' ? `${jitter} jitter` : `spread ${jitter.spread}`}${deadline}`;
}

function backoffWords(backoff: Backoff): string {
  if (backoff.kind === 'table') return `table ${backoff.delaysMs.map(span).join(', ')}`;
  const factor = backoff.kind === 'exponential' ? ` times ${backoff.factor}` : '';
  return `${backoff.kind} from ${span(backoff.baseMs)}${factor}`;
}
