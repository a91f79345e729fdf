import type { Lane } from '../lane.ts';

/** Why a job is dead. Append only: stores keep the position in this list. */
export const deadReasons = ['exhausted', 'unrecoverable', 'deadline', 'poison', 'no-handler'] as const;
export type DeadReason = (typeof deadReasons)[number];

export type RetryCause = 'backoff' | 'retry-after' | 'crash';

/** What the policy chose. `rule` names what made the choice; `note` what went wrong on the way to it. */
export type Decision = { readonly rule: string; readonly note?: string } & (
  | { readonly kind: 'complete' }
  | { readonly kind: 'retry'; readonly why: RetryCause; readonly delayMs: number; readonly lane: Lane }
  | { readonly kind: 'dead'; readonly reason: DeadReason; readonly counted: boolean }
  | { readonly kind: 'snooze' | 'release' | 'defer'; readonly delayMs: number }
  | { readonly kind: 'cancel'; readonly counted: boolean }
);
