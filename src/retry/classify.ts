import { describe } from '../config.ts';
import type { Duration } from '../duration.ts';
import { type ErrorCache, toStoredError } from '../untrusted/stored-error.ts';
import { read } from '../untrusted/thrown.ts';
import { type Control, controlErrorOf, waitFrom } from './control-errors.ts';
import { callUser, type FailedRun, joinNotes, readDelay } from './custom.ts';
import { type Failure, type FailureClass, failureClasses, type Outcome, type StoredError } from './outcome.ts';
import { retryAfterOf } from './retry-after.ts';
import { type ClassifyRule, defaultRules, type Match, matchRules } from './rules.ts';

export { type BackoffArgs, type BackoffFunction, customDelay, type FailedRun, withCustomDelay } from './custom.ts';
export { type ClassifyRule, validateClassifyRules } from './rules.ts';

/** What a definition's own `classify` may return; with undefined, the rules decide. */
export type Verdict = FailureClass | { readonly class?: FailureClass; readonly retryAfter?: Duration } | undefined;

/** A definition's own classification. It must return at once: a promise is not waited for. */
export type ClassifyFunction = (error: unknown, run: FailedRun) => Verdict;

export interface ClassifyContext {
  readonly now: number;
  readonly run: FailedRun;
  /** The definition's own function, if it has one. */
  readonly classify?: ClassifyFunction | undefined;
  /** The definition's own rules, tried before the default ones. */
  readonly rules?: readonly ClassifyRule[] | undefined;
  /** The worker's recent errors, so that equal ones are cleaned once. */
  readonly recentErrors?: ErrorCache | undefined;
}

/** What a thrown value can mean: mostly a failure, but a control error asks for a snooze or a cancel. */
export type ThrownOutcome = Extract<Outcome, { kind: 'failed' | 'snoozed' | 'cancelled' }>;

/** A control error first, then the definition's function, then the rules, then `job`. Never throws. */
export function classify(thrown: unknown, context: ClassifyContext): ThrownOutcome {
  const control = controlErrorOf(thrown);
  if (control !== null) return byControl(control, thrown, context);
  const verdict = verdictOf(thrown, context);
  const match = verdict.class === null ? byRules(thrown, context.rules) : { class: verdict.class, rule: 'classify()' };
  const retryAfterMs = verdict.retryAfterMs ?? retryAfterOf(thrown, context.now);
  return failed(toStoredError(thrown, context.recentErrors), match, retryAfterMs, verdict.note);
}

function byControl(control: Control, thrown: unknown, { now, recentErrors }: ClassifyContext): ThrownOutcome {
  const error = toStoredError(thrown, recentErrors);
  switch (control.kind) {
    case 'snooze':
      return { kind: 'snoozed', delayMs: waitFrom(control.wait, now) };
    case 'cancel':
      return { kind: 'cancelled', error };
    case 'unrecoverable':
      return failed(error, { class: 'permanent', rule: 'thrown:Unrecoverable' }, null, null);
    case 'retry-after':
      // The other side asks for time, so the trouble is there and not in the job.
      return failed(error, { class: 'environment', rule: 'thrown:RetryAfter' }, waitFrom(control.wait, now), null);
  }
}

function byRules(thrown: unknown, rules: readonly ClassifyRule[] = []): Match {
  return matchRules(thrown, rules) ?? matchRules(thrown, defaultRules) ?? { class: 'job', rule: 'default' };
}

function failed(error: StoredError, match: Match, retryAfterMs: number | null, note: string | null): ThrownOutcome {
  const failure: Failure = {
    error,
    class: match.class,
    rule: match.rule,
    retryAfterMs,
    customDelayMs: null,
    note,
  };
  return { kind: 'failed', failure };
}

interface ReadVerdict {
  readonly class: FailureClass | null;
  readonly retryAfterMs: number | null;
  readonly note: string | null;
}

const noVerdict: ReadVerdict = { class: null, retryAfterMs: null, note: null };

function verdictOf(thrown: unknown, { classify, run }: ClassifyContext): ReadVerdict {
  if (classify === undefined) return noVerdict;
  const nothing = { class: null, retryAfterMs: null };
  const { answer, note } = callUser('classify()', () => classify(thrown, run));
  if (answer === undefined || answer === null) return { ...nothing, note };
  if (isFailureClass(answer)) return { ...nothing, class: answer, note: null };
  return typeof answer === 'object' ? verdictFrom(answer) : { ...nothing, note: noClass(answer) };
}

/** The class and the wait are read separately: a bad wait does not undo a good class. */
function verdictFrom(answer: object): ReadVerdict {
  const given = read(answer, 'class');
  const retryAfter = read(answer, 'retryAfter');
  const isNonsense = given === undefined ? retryAfter === undefined : !isFailureClass(given);
  const { delayMs, note } = readDelay(retryAfter, 'classify().retryAfter');
  return {
    class: isFailureClass(given) ? given : null,
    retryAfterMs: delayMs,
    note: joinNotes(isNonsense ? noClass(given ?? answer) : null, note),
  };
}

function noClass(answer: unknown): string {
  return `classify() returned ${describe(answer)}, which is no failure class`;
}

function isFailureClass(value: unknown): value is FailureClass {
  return failureClasses.includes(value as FailureClass);
}
