import type { RemoteVerb } from '../store/http/verbs.ts';
import { CLAIM_BYTES } from '../store/store.ts';
import { PAGE_IN_MEMORY, ROWS_IN_MEMORY } from './budget.ts';

/** What the answer of a store verb takes in memory at most, where that is more than a few rows. */
export const answerBytes: Readonly<Partial<Record<RemoteVerb, number>>> = {
  // The text, and as text inside of JSON.
  claim: 2 * CLAIM_BYTES,
  claimGated: 2 * CLAIM_BYTES,
  claimLimited: 2 * CLAIM_BYTES,
  expired: 2 * CLAIM_BYTES,
  get: PAGE_IN_MEMORY,
  list: PAGE_IN_MEMORY,
  ended: PAGE_IN_MEMORY,
  recall: ROWS_IN_MEMORY,
  runs: ROWS_IN_MEMORY,
  logs: ROWS_IN_MEMORY,
  ledger: ROWS_IN_MEMORY,
  operations: ROWS_IN_MEMORY,
  schedules: ROWS_IN_MEMORY,
  gates: ROWS_IN_MEMORY,
  limits: ROWS_IN_MEMORY,
  limitKeys: ROWS_IN_MEMORY,
  errorGroups: ROWS_IN_MEMORY,
};
