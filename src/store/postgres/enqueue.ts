import { KEY_LIFE } from '../codes.ts';
import { checkPayloads, joinJson } from '../json.ts';
import type { Enqueued, NewJob } from '../store.ts';
import { plain, texts } from './connection/arrays.ts';
import { isDuplicate } from './connection/failure.ts';
import type { Session } from './session.ts';
import { LARGEST_CALL } from './sql/shared.ts';

export const ENQUEUE = `
  SELECT * FROM @.enqueue($1::uuid[], $2::int[], $3::int[], $4::bigint[], $5::bigint[], $6::smallint[], $7::text[], $8,
    $9::int[], $10::int[], $11::text[], $12, $13)`;

/**
 * A key that an open transaction has taken is not waited for until that one ends: meanwhile this one would hold the keys
 * it has already, and a connection. Outside of transactions this lasts for the statement.
 */
const ENQUEUE_KEYED = `
  SELECT e.* FROM set_config('lock_timeout', '250ms', true) AS patience,
    LATERAL (${ENQUEUE} WHERE patience <> '' OFFSET 0) AS e`;

/** The columns of a batch, and what to tell other processes with it. */
async function enqueueValues(session: Session, jobs: readonly NewJob[], notice: string | null): Promise<unknown[]> {
  checkPayloads(jobs);
  const kinds = await session.kinds.intern(jobs);
  const known = [...new Set(kinds)];
  return [
    plain(jobs.map((job) => job.id)),
    plain(kinds.map((kind) => kind.id)),
    plain(kinds.map((kind) => kind.line)),
    plain(jobs.map((job) => job.delayMs)),
    plain(jobs.map((job) => job.dueAt)),
    plain(jobs.map((job) => KEY_LIFE[job.keyLife])),
    jobs.some(isKeyed) ? texts(jobs.map((job) => job.key)) : null,
    joinJson(jobs.map((job) => job.payload)),
    plain(known.map((kind) => kind.id)),
    plain(known.map((kind) => kind.line)),
    texts(known.map((kind) => kind.name)),
    notice,
  ];
}

function isKeyed({ key }: NewJob): boolean {
  return key !== null;
}

export async function enqueue(session: Session, jobs: readonly NewJob[], notice: string | null): Promise<Enqueued[]> {
  const answers: Enqueued[] = [];
  for (let at = 0; at < jobs.length; at += LARGEST_CALL - 1) {
    const some = jobs.slice(at, at + LARGEST_CALL - 1);
    answers.push(...enqueued(some, await send(session, some, notice)));
  }
  return answers;
}

async function send(session: Session, jobs: readonly NewJob[], notice: string | null): Promise<Taken[]> {
  const values = await enqueueValues(session, jobs, notice);
  const sql = jobs.some(isKeyed) ? ENQUEUE_KEYED : ENQUEUE;
  try {
    return await session.db.query<Taken>(sql, [...values, false]);
  } catch (error) {
    // Sent before, and the answer was lost.
    if (!isDuplicate(error)) throw error;
    return session.db.query<Taken>(sql, [...values, true]);
  }
}

/** A call that is part of somebody's transaction: there, a violation would be the end of it. */
export async function enqueueValuesInside(session: Session, jobs: readonly NewJob[]): Promise<unknown[]> {
  return [...(await enqueueValues(session, jobs, null)), true];
}

export type Taken = [ord: number, holder: string];

export function enqueued(jobs: readonly NewJob[], taken: readonly Taken[]): Enqueued[] {
  const holders = new Map(taken);
  return jobs.map(({ id }, index) => {
    const holder = holders.get(index + 1);
    return holder === undefined ? { id, existed: false } : { id: holder, existed: true };
  });
}
