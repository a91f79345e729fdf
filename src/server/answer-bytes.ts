import { CLAIM_BYTES } from '../store/store.ts';
import { type AnswerSize, type RemoteVerb, rowOf } from '../store/verbs.ts';
import { PAGE_IN_MEMORY, ROWS_IN_MEMORY } from './budget.ts';

const bytesOf: Readonly<Record<AnswerSize, number>> = {
  // The text, and as text inside of JSON.
  claim: 2 * CLAIM_BYTES,
  page: PAGE_IN_MEMORY,
  rows: ROWS_IN_MEMORY,
};

/** What the answer of a store verb takes in memory at most, where that is more than a few rows. */
export function answerBytes(verb: RemoteVerb): number {
  const { answer } = rowOf(verb);
  return answer === undefined ? 0 : bytesOf[answer];
}
