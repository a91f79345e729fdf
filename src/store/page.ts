import { byteLength } from '../bytes.ts';
import type { Job } from '../job.ts';
import { shapeOf } from '../json-shape.ts';
import type { JobList } from './selection.ts';

/*
 * An answer with jobs is bounded in what they carry, and not in their number alone: a thousand payloads of 256 KiB, read, copied
 * and written again, are more than a process has.
 */

/** At most so much JSON of payloads, progress and results is in one answer, unless a single job is larger. */
export const PAGE_BYTES: number = 8 * 1_048_576;
/** And at most so many values: `[[],[],[]]` takes twenty times as much memory as its text. */
export const PAGE_VALUES = 250_000;

/** Texts of a job that an answer carries. */
type Text = string | null;

/** Counts what the jobs of one answer carry. */
export class JobPage {
  #jobs = 0;
  #bytes = 0;
  #values = 0;

  /** Whether the answer has room for a job with these texts; it has for the first. After a no, the page is over. */
  takes(...texts: readonly Text[]): boolean {
    for (const text of texts) {
      if (text === null) continue;
      this.#bytes += byteLength(text);
      this.#values += shapeOf(text).values;
    }
    return this.#jobs++ === 0 || (this.#bytes <= PAGE_BYTES && this.#values <= PAGE_VALUES);
  }
}

/** A list that ends here, although more was asked for. */
export function stopped(jobs: JobList): JobList {
  const last = jobs.at(-1);
  if (last !== undefined) jobs.stoppedAfter = last.id;
  return jobs;
}

/** All of these jobs, in as many answers as they need; one answer's worth at a time. */
export async function* getAll(
  store: { get(ids: readonly string[]): Promise<JobList> },
  ids: readonly string[],
): AsyncGenerator<Job> {
  for (let left = ids; left.length > 0; ) {
    const jobs = await store.get(left);
    yield* jobs;
    if (jobs.stoppedAfter === undefined) return;
    left = left.slice(left.indexOf(jobs.stoppedAfter) + 1);
  }
}
