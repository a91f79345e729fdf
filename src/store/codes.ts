import { keyLives, lanes, states, waitingStates } from '../job.ts';
import { deadReasons } from '../retry/decision.ts';
import { outcomeKinds } from '../retry/outcome.ts';

/*
 * What the database stores write as small numbers: the position of a word in the list that defines it. Those lists are
 * append only, because the numbers are in people's databases.
 */
function codesOf<Word extends string>(words: readonly Word[]): Readonly<Record<Word, number>> {
  return Object.fromEntries(words.map((word, code) => [word, code])) as Record<Word, number>;
}

export const STATE = codesOf(states);
export const LANE = codesOf(lanes);
export const KEY_LIFE = codesOf(keyLives);
export const OUTCOME = codesOf(outcomeKinds);
export const DEAD_REASON = codesOf(deadReasons);

/** For SQL: the codes of the states in which a job waits to be claimed. */
export const WAITING = waitingStates.map((state) => STATE[state]).join(', ');
