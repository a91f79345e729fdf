import type { Aside } from '../retry/decision.ts';

/*
 * Jobs that a worker could not run wait aside: its deploy does not know their name, or only an older version of it, or its
 * schema rejected their payload. They wait in partitions of their own, by queue, lane, priority and resource as others do,
 * and by the name and the `Aside` with which they were settled. Claims of workers that may not read such a partition never
 * look at it, so that nothing is claimed and handed back again and again.
 *
 * A settlement without an `aside` puts a job back among the others; a retry, for example, waits where all retries of its name do.
 */

/** Job names, with the versions of the definitions that a worker has of them. */
export type KnownJobs = ReadonlyMap<string, number>;

/** What a worker says of itself with each claim. */
export interface Reader {
  readonly knows?: KnownJobs;
  /** Names of which it has just rejected a payload: it leaves rejected ones of these names to others for now. */
  readonly avoids?: ReadonlySet<string>;
}

/** Whether a worker may take jobs of this name that wait aside. */
export function mayRead({ knows, avoids }: Reader, name: string, { version, isRejected }: Aside): boolean {
  const known = knows?.get(name);
  return known !== undefined && known >= version && !(isRejected && avoids?.has(name));
}

/** Stands in no name of a job or a queue. */
export const MARK = '\u0001';
const REJECTED = 'rejected';

/**
 * SQLite and PostgreSQL keep the partitions of jobs aside under a queue of their own, which they name like this: so claims of
 * the queue itself do not meet them, those of an older version included.
 */
export function asideQueue(queue: string, name: string, { version, isRejected }: Aside): string {
  return [queue, name, version, isRejected ? REJECTED : ''].join(MARK);
}

export interface ParsedQueue {
  readonly queue: string;
  /** Null for an ordinary queue. */
  readonly aside: (Aside & { readonly name: string }) | null;
}

export function parseQueue(text: string): ParsedQueue {
  if (!text.includes(MARK)) return { queue: text, aside: null };
  const [queue, name, version, kind] = text.split(MARK) as [string, string, string, string];
  return { queue, aside: { name, version: Number(version), isRejected: kind === REJECTED } };
}
