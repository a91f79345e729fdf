import { keyLifeCodes } from '../codes.ts';
import type { Enqueued, NewJob } from '../store.ts';
import { plain, texts } from './arrays.ts';
import type { Session } from './session.ts';
import type { LineName } from './words.ts';

export const ENQUEUE = `
  SELECT * FROM @.enqueue($1::uuid[], $2::int[], $3::int[], $4::int[], $5::bigint[], $6::bigint[], $7::smallint[],
    $8::text[], $9::text[], $10::text[])`;

/** The columns of a batch. Names, policies and lines that are new are stored first, by themselves. */
export async function enqueueValues(session: Session, jobs: readonly NewJob[]): Promise<unknown[]> {
  const lineOf = await session.lines.intern(jobs.map(homeOf));
  const wordOf = await session.words.intern(new Set(jobs.map((job) => job.name)));
  const policyOf = await session.words.internPolicies(new Set(jobs.map((job) => job.policy)));
  return [
    plain(jobs.map((job) => job.id)),
    plain(jobs.map((job) => lineOf(homeOf(job)))),
    plain(jobs.map((job) => wordOf(job.name))),
    plain(jobs.map((job) => policyOf(job.policy))),
    plain(jobs.map((job) => job.delayMs)),
    plain(jobs.map((job) => job.dueAt)),
    plain(jobs.map((job) => keyLifeCodes.indexOf(job.keyLife))),
    texts(jobs.map((job) => job.retryQueue)),
    texts(jobs.map((job) => job.key)),
    texts(jobs.map((job) => job.payload)),
  ];
}

export async function enqueue(session: Session, jobs: readonly NewJob[]): Promise<Enqueued[]> {
  const taken = await session.db.query<Taken>(ENQUEUE, await enqueueValues(session, jobs));
  return enqueued(jobs, taken);
}

export type Taken = [ord: number, holder: string];

export function enqueued(jobs: readonly NewJob[], taken: readonly Taken[]): Enqueued[] {
  const holders = new Map(taken);
  return jobs.map(({ id }, index) => {
    const holder = holders.get(index + 1);
    return holder === undefined ? { id, existed: false } : { id: holder, existed: true };
  });
}

function homeOf({ queue, resource, priority }: NewJob): LineName {
  return { queue, resource, lane: 'fresh', priority };
}
