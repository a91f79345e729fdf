import { derivedId } from '../derived-id.ts';
import type { NewJob, Reaction, Settlement } from './store.ts';

/** Stands for the id of the dead job in the payload of a reaction that was prepared before that job had an id: by a schedule. */
export const ID_OF_DEAD_JOB = '5d1fbe6e-6a3c-4f0b-9d52-0c7e1be8a4d3';

/**
 * The job that reacts to a death. Its id follows from the run that was the last one, so it is the same job when the settlement is
 * sent again, and another one when the job is redriven and dies again. A whole millisecond: a UUID has no other.
 */
export function reactionTo(
  { id, run, endedAt }: Pick<Settlement, 'id' | 'run' | 'endedAt'>,
  reaction: Reaction,
): NewJob {
  return {
    ...reaction,
    payload: reaction.payload.replaceAll(ID_OF_DEAD_JOB, id),
    id: derivedId(Math.floor(endedAt), `dead\n${run}\n${id}`),
    delayMs: 0,
    dueAt: null,
    key: null,
    keyLife: 'finished',
  };
}
