import { describe } from '../config.ts';
import type { Duration } from '../duration.ts';
import { toStoredError } from '../untrusted/stored-error.ts';
import { read } from '../untrusted/thrown.ts';
import { type Control, controlErrorOf, waitFrom } from './control-errors.ts';
import { ask, type FailedRun, joinNotes, readDelay } from './custom.ts';
import type { Failure, FailureClass, Outcome } from './outcome.ts';
import { retryAfterOf } from './retry-after.ts';
import { type ClassifyRule, defaultRules, failureClasses, type Match, matchRules } from './rules.ts';

export { type BackoffArgs, type BackoffFunction, customDelay, type FailedRun, withCustomDelay } from './custom.ts';
export { type ClassifyRule, validateClassifyRules } from './rules.ts';

/** What a definition's own `classify` may answer; undefined leaves it to the rules. */
export type Verdict = FailureClass | { readonly class?: FailureClass; readonly retryAfter?: Duration } | undefined;

/** A definition's own classification. It must answer at once: no promise is waited for. */
export type ClassifyFunction = (error: unknown, run: FailedRun) => Verdict;

export interface ClassifyContext {
  readonly now: number;
  readonly run: FailedRun;
  /** The definition's own function, if it has one. */
  readonly classify?: ClassifyFunction | undefined;
  /** The definition's own rules, tried before the default ones. */
  readonly rules?: readonly ClassifyRule[] | undefined;
}

/** What a throw can mean: mostly a failure, but a handler may also ask for a snooze or give up its job by throwing. */
export type ThrownOutcome = Extract<Outcome, { kind: 'failed' | 'snoozed' | 'cancelled' }>;

/** A control error first, then what the definition's function answers, then the rules, then `job`. Never throws. */
export function classify(thrown: unknown, context: ClassifyContext): ThrownOutcome {
  const control = controlErrorOf(thrown);
  if (control !== null) return byControl(control, thrown, context.now);
  const verdict = verdictOf(thrown, context);
  const match = verdict.class === null ? byRules(thrown, context.rules) : { class: verdict.class, rule: 'classify()' };
  return failed(thrown, match, verdict.retryAfterMs ?? retryAfterOf(thrown, context.now), verdict.note);
}

function byControl(control: Control, thrown: unknown, now: number): ThrownOutcome {
  switch (control.kind) {
    case 'snooze':
      return { kind: 'snoozed', delayMs: waitFrom(control.wait, now) };
    case 'cancel':
      return { kind: 'cancelled', error: toStoredError(thrown) };
    case 'unrecoverable':
      return failed(thrown, { class: 'permanent', rule: 'thrown:Unrecoverable' }, null, null);
    case 'retry-after':
      // Whoever asks for time is in trouble, not the job.
      return failed(thrown, { class: 'environment', rule: 'thrown:RetryAfter' }, waitFrom(control.wait, now), null);
  }
}

function byRules(thrown: unknown, rules: readonly ClassifyRule[] = []): Match {
  return matchRules(thrown, rules) ?? matchRules(thrown, defaultRules) ?? { class: 'job', rule: 'default' };
}

function failed(thrown: unknown, match: Match, retryAfterMs: number | null, note: string | null): ThrownOutcome {
  const failure: Failure = {
    error: toStoredError(thrown),
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
  const { answer, note } = ask('classify()', () => classify(thrown, run));
  if (answer === undefined || answer === null) return { ...nothing, note };
  if (isFailureClass(answer)) return { ...nothing, class: answer, note: null };
  return typeof answer === 'object' ? verdictFrom(answer) : { ...nothing, note: noClass(answer) };
}

/** Each half counts on its own: a bad wait does not undo a good class. */
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
