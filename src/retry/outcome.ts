import type { StoredError } from '../untrusted/stored-error.ts';

export type { StoredError } from '../untrusted/stored-error.ts';

/** What a run did: a value, made by running and read by `decide`. */
export type Outcome =
  | { readonly kind: 'completed' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'crashed' }
  | { readonly kind: 'snoozed'; readonly delayMs: number }
  | { readonly kind: 'released'; readonly because: ReleaseCause }
  | { readonly kind: 'cancelled'; readonly error: StoredError | null };

/** The ledger's words for outcomes; `deferred` is a failure whose attempt a gate gave back. Append only: stores keep the position. */
export const outcomeKinds = ['completed', 'failed', 'crashed', 'snoozed', 'released', 'deferred', 'cancelled'] as const;
export type OutcomeKind = (typeof outcomeKinds)[number];

/** Why a run was handed back before its handler ended. */
export type ReleaseCause =
  | { readonly kind: 'shutdown' }
  /** The worker made room for the trial of a suspect before it started. */
  | { readonly kind: 'trial' }
  /** Its lease ended before it started: it waited too long in the worker, or for the claim's answer. */
  | { readonly kind: 'late' }
  /** It was cancelled before it started. */
  | { readonly kind: 'cancelled' }
  /** Its gate has opened before it started. */
  | { readonly kind: 'gate' }
  /** Its last attempt had failed, and the outage that might have excused it was none. */
  | { readonly kind: 'exhausted' }
  /** This worker does not know its name, or only an older version of it: `known`. */
  | { readonly kind: 'no-handler'; readonly known: number | null; readonly giveUpAfterMs: number }
  | ({ readonly kind: 'rejected' } & Rejection)
  | { readonly kind: 'deadline' };

/** The definition of this worker cannot read the payload. */
export interface Rejection {
  readonly error: StoredError;
  readonly before: RejectedBefore | null;
  readonly giveUpAfterMs: number;
}

/** What the ledger says of a payload that workers have rejected since the job last ran. */
export interface RejectedBefore {
  readonly times: number;
  readonly since: number;
  /** How it was rejected last; undefined when an older version did. */
  readonly kind: string | undefined;
}

/** permanent: retrying cannot help; environment: a dependency is in trouble; job: everything else. */
export const failureClasses = ['permanent', 'environment', 'job'] as const;
export type FailureClass = (typeof failureClasses)[number];

/** A failure as plain data: what the handler threw, and what classification made of it. */
export interface Failure {
  readonly error: StoredError;
  readonly class: FailureClass;
  /** The rule that classified it, for the ledger: `thrown:Unrecoverable`, `http:503`, `default`, ... */
  readonly rule: string;
  /** A wait the other side asked for; jitter and caps never shorten it. */
  readonly retryAfterMs: number | null;
  /** What the definition's own backoff function chose; null when it has none, or when it misbehaved. */
  readonly customDelayMs: number | null;
  /** What went wrong in user-supplied functions on the way here. */
  readonly note: string | null;
}
