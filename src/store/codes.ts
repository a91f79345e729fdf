import type { JobState, KeyLife, Lane } from '../job.ts';
import type { DeadReason } from '../retry/decide.ts';
import type { OutcomeKind } from '../retry/outcome.ts';

/*
 * What the database stores write as small numbers: the position in these lists. Append only: the numbers are in
 * people's databases.
 */
export const stateCodes: readonly JobState[] = [
  'scheduled',
  'ready',
  'retrying',
  'running',
  'completed',
  'dead',
  'cancelled',
];
export const laneCodes: readonly Lane[] = ['fresh', 'retry', 'redrive', 'suspect'];
export const keyLifeCodes: readonly KeyLife[] = ['started', 'finished', 'pruned'];
export const outcomeCodes: readonly OutcomeKind[] = [
  'completed',
  'failed',
  'crashed',
  'snoozed',
  'released',
  'deferred',
  'cancelled',
];
export const deadReasonCodes: readonly DeadReason[] = [
  'exhausted',
  'unrecoverable',
  'deadline',
  'poison',
  'no-handler',
];

export const STATE = {
  scheduled: 0,
  ready: 1,
  retrying: 2,
  running: 3,
  completed: 4,
  dead: 5,
  cancelled: 6,
} as const;
