import { type LimitKey, limitsText } from '../../limit/limit.ts';
import { type PartBounds, partsOf } from '../../parts.ts';
import { KEY_LIFE } from '../codes.ts';
import { checkPayloads, joinJson } from '../json.ts';
import type { Enqueued, NewJob } from '../store.ts';
import { plain, texts } from './connection/arrays.ts';
import { isDuplicate } from './connection/failure.ts';
import type { JobType } from './job-types.ts';
import { keyedOf, type Partition, type PartitionIdentity, partitionIn } from './partitions.ts';
import type { Session } from './session.ts';
import { UNBOUNDED } from './sql/debounce.ts';
import { LARGEST_CALL } from './sql/shared.ts';

/** The values of `enqueueValues`, and then whether jobs may be sent again, whether their partitions are admitted, and `rareValues`. */
export const ENQUEUE_ARGUMENTS: string = `$1, $2::uuid[], $3::int[], $4::int[], $5::int[], $6::bigint[], $7::bigint[], $8::bigint[],
    $9::smallint[], $10::text[], $11::text[], $12, $13::text[], $14::bigint[], $15, $16, $17, $18::bigint[], $19::text[],
    $20::bigint[], $21::text[], $22::text[], $23::text[]`;
export const ENQUEUE: string = `
  SELECT * FROM @.enqueue(${ENQUEUE_ARGUMENTS})`;

const bounds: PartBounds<NewJob> = {
  limit: LARGEST_CALL - 1,
  /** A call of more bytes would be slow to build and could outgrow the longest string there is. */
  maxBytes: 16 * 1_048_576,
  bytesOf: ({ payload }) => payload.length,
};

/**
 * A key that an open transaction has taken is not waited for until that one ends: meanwhile this one would hold the keys
 * it has already, and a connection. Outside of transactions this lasts for the statement.
 */
const ENQUEUE_KEYED = `
  SELECT e.* FROM set_config('lock_timeout', '250ms', true) AS patience,
    LATERAL (${ENQUEUE} WHERE patience <> '' OFFSET 0) AS e`;

/** The columns of a batch, and what to notify other processes of with it. */
function enqueueValues(
  identity: string,
  jobs: readonly NewJob[],
  types: readonly JobType[],
  partitions: readonly Partition[],
  notice: string | null,
): unknown[] {
  const hasKeys = jobs.some(hasKey);
  const distinct = [...new Set(types)];
  return [
    identity,
    plain(jobs.map((job) => job.id)),
    plain(types.map((type) => type.id)),
    plain(distinct.map((type) => type.id)),
    plain(distinct.map((type) => type.countedAs)),
    plain(partitions.map((partition) => partition.id)),
    // Usually nothing is said, and the server has no array to take apart.
    jobs.some(({ delayMs }) => delayMs !== 0) ? plain(jobs.map((job) => job.delayMs)) : null,
    jobs.some(({ dueAt }) => dueAt !== null) ? plain(jobs.map((job) => job.dueAt)) : null,
    jobs.some(({ keyLife }) => keyLife !== 'finished') ? plain(jobs.map((job) => KEY_LIFE[job.keyLife])) : null,
    hasKeys ? texts(jobs.map((job) => job.name)) : null,
    hasKeys ? texts(jobs.map((job) => job.key)) : null,
    joinJson(jobs.map((job) => job.payload)),
    jobs.some(({ tags }) => tags) ? texts(jobs.map(({ tags }) => (tags ? texts(tags) : null))) : null,
    keyedOf(partitions),
    notice,
  ];
}

/** What few jobs have. */
function rareValues(jobs: readonly NewJob[]): (string | null)[] {
  return [debounceOf(jobs), limitsOf(jobs), windowsOf(jobs), onLimitOf(jobs), tracesOf(jobs), reactionsOf(jobs)];
}

/** Usually no job is debounced, and nothing is sent. */
function debounceOf(jobs: readonly NewJob[]): string | null {
  if (jobs.every(({ debounce }) => debounce === undefined)) return null;
  return plain(jobs.map(({ debounce }) => (debounce === undefined ? null : (debounce.maxWaitMs ?? UNBOUNDED))));
}

/** Usually no job has limits, and nothing is sent. */
function limitsOf(jobs: readonly NewJob[]): string | null {
  if (jobs.every(({ limits }) => limits === undefined)) return null;
  return texts(jobs.map(({ limits }) => limitsText(limits ?? []) || null));
}

/** Usually nothing is traced, and nothing is sent. */
function tracesOf(jobs: readonly NewJob[]): string | null {
  if (jobs.every(({ trace }) => trace === undefined)) return null;
  return texts(jobs.map(({ trace }) => trace ?? null));
}

/** Usually no job has a reaction, and nothing is sent. */
function reactionsOf(jobs: readonly NewJob[]): string | null {
  if (jobs.every(({ onDead }) => onDead === undefined)) return null;
  return texts(jobs.map(({ onDead }) => (onDead === undefined ? null : JSON.stringify(onDead))));
}

function windowsOf(jobs: readonly NewJob[]): string | null {
  if (jobs.every(({ windowMs }) => windowMs === undefined)) return null;
  return plain(jobs.map(({ windowMs }) => windowMs ?? null));
}

/** The rules of sql/on-limit.ts. */
function onLimitOf(jobs: readonly NewJob[]): string | null {
  if (jobs.every(({ onLimit }) => onLimit === undefined)) return null;
  const before = new Set<string>();
  return texts(
    jobs.map(({ limits = [], onLimit }) => {
      const counts = onLimit?.some((one) => before.has(limitsText([one])));
      for (const one of limits) before.add(limitsText([one]));
      return onLimit ? JSON.stringify([counts, onLimit.map(({ limit, key, action }) => [limit, key, action])]) : null;
    }),
  );
}

function hasKey({ key }: NewJob): boolean {
  return key !== null;
}

/** Its statement may have to wait for another transaction. */
function contends(job: NewJob): boolean {
  return hasKey(job) || job.onLimit !== undefined;
}

export async function enqueue(session: Session, jobs: readonly NewJob[], notice: string | null): Promise<Enqueued[]> {
  const answers: Enqueued[] = [];
  for (const some of partsOf(jobs, bounds).flatMap(apartByKey)) {
    answers.push(...enqueued(some, await send(session, some, notice)));
    await rewind(session, some);
  }
  return answers;
}

/**
 * A debounced job replaces a stored one, and a job that does not wait behind a full key may not be stored: so two of one key go
 * with two statements, in their order.
 */
export function apartByKey(jobs: readonly NewJob[]): (readonly NewJob[])[] {
  if (jobs.every(({ debounce, onLimit }) => debounce === undefined && onLimit === undefined)) return [jobs];
  const parts: NewJob[][] = [[]];
  const keys = new Set<string>();
  for (const job of jobs) {
    const slot = job.key === null ? null : JSON.stringify([job.name, job.key]);
    if (slot !== null && keys.has(slot)) {
      parts.push([]);
      keys.clear();
    }
    if (slot !== null) keys.add(slot);
    parts.at(-1)?.push(job);
  }
  return parts;
}

/** Claims of this process may have passed the place of a job that is due in the past. */
async function rewind(session: Session, jobs: readonly NewJob[]): Promise<void> {
  const past = jobs.filter(({ dueAt }) => dueAt !== null);
  if (past.length === 0) return;
  const partitions = await session.partitions.intern(past.map((job) => partitionIn('fresh', job)));
  for (const [index, { dueAt }] of past.entries()) {
    session.cursors.rewind((partitions[index] as Partition).id, Math.max(0, dueAt as number));
  }
}

async function send(session: Session, jobs: readonly NewJob[], notice: string | null): Promise<Taken[]> {
  checkPayloads(jobs);
  const types = await session.jobTypes.intern(jobs);
  return session.partitions.use(homesOf(jobs), async (partitions) => {
    const values = enqueueValues(session.identity, jobs, types, partitions, notice);
    return takenOrNull(await sendOnce(session, jobs, jobs.some(contends) ? ENQUEUE_KEYED : ENQUEUE, values));
  });
}

async function sendOnce(
  session: Session,
  jobs: readonly NewJob[],
  sql: string,
  values: readonly unknown[],
): Promise<Taken[]> {
  try {
    return await session.db.query<Taken>(sql, [...values, false, null, ...rareValues(jobs)]);
  } catch (error) {
    // Sent before, and the answer was lost.
    if (!isDuplicate(error)) throw error;
    return session.db.query<Taken>(sql, [...values, true, null, ...rareValues(jobs)]);
  }
}

/**
 * As part of another function's work: `query` sends the values to it. It answers null, and has written nothing, when the
 * partitions are to be looked up again.
 */
export async function enqueueWith<Answer>(
  session: Session,
  jobs: readonly NewJob[],
  query: (values: unknown[]) => Promise<Answer | null>,
): Promise<Answer> {
  checkPayloads(jobs);
  const types = await session.jobTypes.intern(jobs);
  const answer = await session.partitions.use(homesOf(jobs), (partitions) =>
    query([...enqueueValues(session.identity, jobs, types, partitions, null), true, null, ...rareValues(jobs)]),
  );
  await rewind(session, jobs);
  return answer;
}

/**
 * As part of a caller's transaction, through which `query` sends the values. There an error would be the end of it, so no
 * unique violation is risked; and the transaction does not write to partitions, which are admitted outside of it.
 */
export async function enqueueInside(
  session: Session,
  jobs: readonly NewJob[],
  notice: string | null,
  query: (values: unknown[]) => Promise<Taken[]>,
): Promise<Taken[]> {
  checkPayloads(jobs);
  const types = await session.jobTypes.intern(jobs);
  return session.partitions.use(homesOf(jobs), async (partitions, tries) => {
    const isAgain = tries > 0;
    if (isAgain && !(await session.partitions.admit(partitions))) return null;
    const values = enqueueValues(session.identity, jobs, types, partitions, notice);
    return takenOrNull(await query([...values, true, isAgain, ...rareValues(jobs)]));
  });
}

/** Usually each is the same as the one before. */
function homesOf(jobs: readonly NewJob[]): PartitionIdentity[] {
  let home: PartitionIdentity | null = null;
  return jobs.map((job) => {
    const isSame =
      job.queue === home?.queue &&
      job.priority === home.priority &&
      job.resource === home.resource &&
      isAlike(job.limits, home.limits);
    home = isSame ? (home as PartitionIdentity) : partitionIn('fresh', job);
    return home;
  });
}

function isAlike(a: readonly LimitKey[] | undefined, b: readonly LimitKey[]): boolean {
  return a === b || limitsText(a ?? []) === limitsText(b);
}

/** A job that was not stored because of another one, that one, and whether it was replaced; 0 when partitions are to be looked up again. */
export type Taken = [ord: number, holder: string, replaced: boolean];

function takenOrNull(taken: Taken[]): Taken[] | null {
  return taken[0]?.[0] === 0 ? null : taken;
}

export function enqueued(jobs: readonly NewJob[], taken: readonly Taken[]): Enqueued[] {
  const holders = new Map(taken.map((one) => [one[0], one]));
  return jobs.map(({ id }, index) => {
    const found = holders.get(index + 1);
    if (found === undefined) return { id, existed: false };
    const [, holder, replaced] = found;
    return { id: holder, existed: true, ...(replaced && { replaced }) };
  });
}
