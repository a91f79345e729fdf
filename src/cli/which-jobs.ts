import type { Selection } from '../bulk/selection.ts';
import { closest } from '../config.ts';
import { type Job, type JobState, states } from '../job.ts';
import type { Mulligan } from '../mulligan.ts';
import { statesOf } from '../store/selection.ts';
import { number } from './bulk-lines.ts';
import { Failure, wrongUsage } from './failure.ts';

/* Which jobs a person means: by the start of an id, and by names that may be misspelt. */

const MOST_CANDIDATES = 10;
const UUID_LENGTH = 36;
const LOOKED_AT = 100;

/** By its id, or by how the id begins when only one does. */
export async function findOne({ jobs }: Mulligan, id: string): Promise<Job> {
  const found = await jobs.get(id);
  if (found !== null) return found;
  const candidates = await jobs.find(id, MOST_CANDIDATES + 1);
  if (candidates.length === 1) return candidates[0] as Job;
  const asked = JSON.stringify(id);
  if (candidates.length === 0) {
    throw new Failure('NOT_FOUND', `there is no job ${asked}. See mulligan jobs list for what there is.`);
  }
  const named = candidates.slice(0, MOST_CANDIDATES).map((job) => `${job.id} (${job.name}, ${job.state})`);
  const more = candidates.length > MOST_CANDIDATES ? ' and more' : '';
  throw wrongUsage(`expected the beginning of one id, got ${asked}, which begins ${named.join(', ')}${more}.`);
}

/** Ids that were given by their start, in full; one that no job has stays as it is, and is reported by the action. */
export function wholeIds(mulligan: Mulligan, ids: readonly string[]): Promise<string[]> {
  return Promise.all(
    ids.map(async (id) => {
      if (id.length >= UUID_LENGTH) return id;
      return findOne(mulligan, id).then(
        (job) => job.id,
        (error) => {
          if (error instanceof Failure && error.code === 'NOT_FOUND') return id;
          throw error;
        },
      );
    }),
  );
}

/** The selection with whole ids. */
export async function withWholeIds(mulligan: Mulligan, selection: Selection): Promise<Selection> {
  return selection.ids === undefined ? selection : { ...selection, ids: await wholeIds(mulligan, selection.ids) };
}

/** For `--after`: a job that there is none of would end the list. */
export async function readAfter(mulligan: Mulligan, after: string | undefined): Promise<{ readonly after?: string }> {
  return after === undefined ? {} : { after: (await findOne(mulligan, after)).id };
}

/** Why a selection finds no job, where a misspelling or a retry queue explains it. Throws for a fingerprint that no job has. */
export async function hintAtNothing(mulligan: Mulligan, selection: Selection): Promise<string | null> {
  const { name, queue, error, tag } = selection;
  if (error !== undefined && (await mulligan.errors.show(error)) === null) throw unknownError(error);
  if (tag !== undefined && (await mulligan.jobs.list({ tag, limit: 1 })).length === 0)
    return `No job has the tag ${tag}.`;
  if (name === undefined && queue === undefined) return null;
  const { names, queues } = await mulligan.stats();
  if (name !== undefined && !(name in names)) return misspelt('job has the name', name, Object.keys(names));
  if (queue === undefined) return null;
  const known = [...Object.keys(queues), ...(await mulligan.queues.list()).map((one) => one.queue)];
  if (!known.includes(queue)) return misspelt('job was ever in the queue', queue, known);
  return hintAtRetryQueue(mulligan, selection, queue, queues[queue]?.states);
}

export function unknownError(fingerprint: string): Failure {
  return new Failure(
    'NOT_FOUND',
    `expected the fingerprint of an error group, or the start of one, got ${fingerprint}. See mulligan errors list.`,
  );
}

function misspelt(what: string, typed: string, known: readonly string[]): string {
  const meant = closest(typed, known);
  return `No ${what} ${typed}.${meant === null ? '' : ` Did you mean ${meant}?`}`;
}

/** A retry waits and ends in its retry queue, but counts for the queue in which it was enqueued. */
async function hintAtRetryQueue(
  { jobs }: Mulligan,
  { queue: _queue, limit: _limit, ...selection }: Selection,
  queue: string,
  counts: Readonly<Record<JobState, number>> | undefined,
): Promise<string | null> {
  const asked: readonly JobState[] = statesOf({ state: selection.state ?? states });
  const count = asked.reduce((sum, state) => sum + (counts?.[state] ?? 0), 0);
  if (count === 0) return null;
  const elsewhere = [...new Set((await jobs.list({ ...selection, limit: LOOKED_AT })).map((job) => job.queue))];
  if (elsewhere.length === 0) return null;
  return `${number(count)} that were enqueued in ${queue} are ${asked.length === 1 ? asked[0] : 'there'}, but a retry waits and ends in its retry queue. Try --queue ${elsewhere.join(' or --queue ')}.`;
}
