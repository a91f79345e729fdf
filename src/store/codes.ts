import { type JobState, type KeyLife, keyLives, type Lane, lanes, states, waitingStates } from '../job.ts';
import { type DeadReason, deadReasons } from '../retry/decision.ts';
import { type OutcomeKind, outcomeKinds } from '../retry/outcome.ts';

/*
 * What the database stores write as small numbers: the position of a word in the list that defines it. Those lists are
 * append only, because the numbers are in people's databases.
 */
type Codes<Word extends string> = Readonly<Record<Word, number>>;

function codesOf<Word extends string>(words: readonly Word[]): Codes<Word> {
  return Object.fromEntries(words.map((word, code) => [word, code])) as Record<Word, number>;
}

export const STATE: Codes<JobState> = codesOf(states);
export const LANE: Codes<Lane> = codesOf(lanes);
export const KEY_LIFE: Codes<KeyLife> = codesOf(keyLives);
export const OUTCOME: Codes<OutcomeKind> = codesOf(outcomeKinds);
export const DEAD_REASON: Codes<DeadReason> = codesOf(deadReasons);

/** For SQL: the codes of the states in which a job waits to be claimed. */
export const WAITING: string = waitingStates.map((state) => STATE[state]).join(', ');
