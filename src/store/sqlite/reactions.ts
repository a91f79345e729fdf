import { reactionTo } from '../reaction.ts';
import type { Reaction, Settlement } from '../store.ts';
import { enqueue } from './enqueue.ts';
import { packNewJobs } from './packed-jobs.ts';
import type { Session } from './session.ts';

/* Jobs that react to the death of others. They are apart from `jobs`: few jobs have one, and few of these die. */

const FIND = 'SELECT reaction FROM reactions WHERE job = ?';

/** Stores the job that reacts to this death, if there is one. */
export function react(session: Session, seq: number, settlement: Settlement): void {
  const found = session.sql(FIND).get(seq) as { reaction: string } | undefined;
  if (found === undefined) return;
  enqueue(session, ...packNewJobs([reactionTo(settlement, JSON.parse(found.reaction) as Reaction)]));
}
