import type { LimitKey, LimitRule, LimitRules, LimitSettings } from '../limit/limit.ts';
import type { ClaimedJob, ClaimRequest } from './run-verbs.ts';

export interface LimitedClaimRequest extends ClaimRequest {
  /** So many of `limit` are claimed ahead, and will wait in the worker before they start: see `roomWithin`. */
  readonly ahead?: number;
}

export interface LimitedClaim {
  readonly jobs: ClaimedJob[];
  /** Store time of this claim. */
  readonly now: number;
  /**
   * When the next job behind a limit may start by time alone: it falls due, or the rate of its key allows it. `now` when the
   * claim was filled or stopped at CLAIM_BYTES, and there may be more. Null when none waits, or another job must end first.
   * Where only places ahead are left, it may be null in any case.
   */
  readonly nextAt: number | null;
  /** Limits that kept a due job from starting, as far as this claim saw; left out when it saw none. For events and metrics. */
  readonly full?: readonly string[];
}

/** Some of the settings; those that are left out stay as a wider rule says. */
export type LimitOverride = Partial<LimitSettings>;

/** A rule of a limit, or of one of its keys. A total counts all keys, so a key has none of its own. */
export type LimitWrite = { readonly limit: string } & (
  | (LimitRule & { readonly key: null })
  | (Omit<LimitRule, 'settings'> & { readonly key: string; readonly settings: Omit<LimitOverride, 'total'> | null })
);

export interface LimitFilter {
  readonly names?: readonly string[];
  readonly limit: number;
}

/** A limit, and how much of it is in use. */
export interface LimitInfo extends LimitRules {
  readonly name: string;
  /** Jobs that run, of all keys. */
  readonly running: number;
  /** Jobs that wait, of all keys. */
  readonly waiting: number;
  /** How many keys have an operator's rule. */
  readonly keysSet: number;
}

export interface LimitKeyFilter {
  /** Those with these keys only. */
  readonly keys?: readonly string[];
  readonly limit: number;
}

/** A key that has settings of its own or is in use. */
export interface LimitKeyInfo extends LimitKey, LimitRules {
  /** What holds for it. */
  readonly settings: LimitSettings;
  readonly running: number;
  readonly waiting: number;
  /** Those that wait and are due. */
  readonly due: number;
  /** When one more job may start by its rate; null when it has none. */
  readonly startsAt: number | null;
}

export interface PermitRequest extends LimitKey {
  readonly cost: number;
}

/** `startsAt`: when to ask again; null when it is granted. `burst`: at most so much can be granted at once; null for any. */
export interface PermitAnswer {
  readonly now: number;
  readonly startsAt: number | null;
  readonly burst: number | null;
}
