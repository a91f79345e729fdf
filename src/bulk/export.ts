import { StoreBusyError } from '../errors.ts';
import type { Job } from '../job.ts';
import { getAll } from '../store/page.ts';
import { isListedByEnd, type JobFilter, type JobList, type JobSelection } from '../store/selection.ts';
import type { Store } from '../store/store.ts';

/*
 * All jobs of a selection, page by page. Each page begins behind the last job of the one before. While the caller reads a page, that job
 * may be brought back or deleted, and has no place in the order any more: then the next page begins behind an earlier job that has.
 * Without that, an export would end early and say nothing, and the jobs that it left out may be discarded next.
 */

const PAGE = 500;
/** So many of the latest jobs are tried for one that is where it was. */
const MOST_TRIED = 2_000;

type Reads = Pick<Store, 'list' | 'get'>;
/** All that is kept of a job that was exported. */
type Place = Pick<Job, 'id' | 'finishedAt'>;

const placeOf = ({ id, finishedAt }: Job): Place => ({ id, finishedAt });

export async function* exported(
  store: Reads,
  { limit = Number.POSITIVE_INFINITY, ...selection }: JobSelection,
  what: string,
): AsyncGenerator<Job> {
  let before: readonly Place[] = [];
  let left = limit;
  for (let after: string | undefined; left > 0; ) {
    const filter = { ...selection, limit: Math.min(PAGE, left) };
    const page = after === undefined ? await store.list(filter) : await pageAfter(store, filter, after, before, what);
    // A search by message may have stopped behind the last job that it found.
    const edge = page.stoppedAfter === undefined ? [] : await store.get([page.stoppedAfter]);
    yield* page;
    left -= page.length;
    before = [...before, ...[...page, ...edge].map(placeOf)].slice(-MOST_TRIED);
    after = page.stoppedAfter ?? (page.length < filter.limit ? undefined : page.at(-1)?.id);
    if (after === undefined) return;
  }
}

/** `before`: the jobs up to `after`, as they were when they were read. */
async function pageAfter(
  store: Reads,
  filter: JobFilter,
  after: string,
  before: readonly Place[],
  what: string,
): Promise<JobList> {
  const page = await store.list({ ...filter, after });
  if (page.length > 0 || page.stoppedAfter !== undefined) return page;
  const seen = new Set(before.map(({ id }) => id));
  for (let tried = before; ; ) {
    const last = await lastInPlace(store, filter, tried);
    if (last === undefined) throw new StoreBusyError(goneText(what, before.length));
    // It is there, so it was there when the empty page was read.
    if (last.id === after) return page;
    const wider = await store.list({ ...filter, limit: filter.limit + before.length, after: last.id });
    const isEnd = wider.length === 0 && (await lastInPlace(store, filter, [last])) !== undefined;
    if (wider.length > 0 || isEnd) return withoutSeen(wider, seen, filter.limit);
    tried = tried.slice(0, tried.indexOf(last));
  }
}

function withoutSeen(page: JobList, seen: ReadonlySet<string>, limit: number): JobList {
  const fresh: JobList = page.filter(({ id }) => !seen.has(id));
  if (fresh.length > limit) return fresh.slice(0, limit);
  if (page.stoppedAfter !== undefined) fresh.stoppedAfter = page.stoppedAfter;
  return fresh;
}

/** The last of these jobs that is where it was in the order of the list. */
async function lastInPlace(store: Reads, selection: JobSelection, jobs: readonly Place[]): Promise<Place | undefined> {
  const isByEnd = isListedByEnd(selection);
  const before = new Map(jobs.map((job) => [job.id, job]));
  let last: Place | undefined;
  for await (const { id, finishedAt } of getAll(store, [...before.keys()])) {
    const job = before.get(id);
    if (job !== undefined && (!isByEnd || job.finishedAt === finishedAt)) last = job;
  }
  return last;
}

function goneText(what: string, count: number): string {
  return `${what}: expected one of the last ${count} jobs to be where it was, but all of them were brought back or deleted meanwhile, so the rest cannot be found. What was exported so far is right. Export again.`;
}
