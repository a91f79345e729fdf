import type { Lane } from '../lane.ts';

/** Why a job is dead. Append only: stores keep the position in this list. */
export const deadReasons = ['exhausted', 'unrecoverable', 'deadline', 'poison', 'no-handler', 'runs'] as const;
export type DeadReason = (typeof deadReasons)[number];

/** `verdict`: a last attempt that waits for its gate to judge whether there is an outage. */
export type RetryCause = 'backoff' | 'retry-after' | 'crash' | 'verdict';

/** Of a definition, and of a job, that carries none. */
export const FIRST_VERSION = 1;

/** The rule of a release because of the payload; on the ledger it tells since when workers have rejected it. */
export const REJECTED_RULE = 'payload rejected';

/** Where a job goes that a worker could not run: only workers that know its name in this version or a later one look there. */
export interface Aside {
  readonly version: number;
  /** A worker that knows it rejected its payload. */
  readonly isRejected: boolean;
  /** Of a rejected payload: what the schema had against it, in short. Workers that reject one kind may read another. */
  readonly kind?: string;
}

/** What the policy chose. `rule` names what made the choice; `note` what went wrong on the way to it. */
export type Decision = { readonly rule: string; readonly note?: string } & (
  | { readonly kind: 'complete' }
  | { readonly kind: 'retry'; readonly why: RetryCause; readonly delayMs: number; readonly lane: Lane }
  | { readonly kind: 'dead'; readonly reason: DeadReason; readonly counted: boolean }
  /** The failure belongs to an outage, so it does not count. */
  | { readonly kind: 'defer'; readonly delayMs: number; readonly lane: Lane }
  | { readonly kind: 'snooze' | 'release'; readonly delayMs: number; readonly aside?: Aside }
  | { readonly kind: 'cancel'; readonly counted: boolean }
);

/** Where the job waits after this decision; null for among those that every worker may take. */
export function asideAfter(decision: Decision): Aside | null {
  return ('aside' in decision ? decision.aside : undefined) ?? null;
}
