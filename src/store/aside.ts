import type { Aside } from '../retry/decision.ts';

/*
 * Jobs that a worker could not run wait aside: its deploy does not know their name, or only an older version of it, or its
 * schema rejected their payload. They wait in partitions of their own, by queue, lane, priority and resource as others do,
 * and by the name and the `Aside` with which they were settled: rejected payloads by what the schema had against them. Claims of workers that may not read such a partition never
 * look at it, so that nothing is claimed and handed back again and again.
 *
 * A settlement without an `aside` puts a job back among the others; a retry, for example, waits where all retries of its name do.
 */

/** Job names, with the versions of the definitions that a worker has of them. */
export type KnownJobs = ReadonlyMap<string, number>;

/** What a worker says of itself with each claim. */
export interface Reader {
  readonly knows?: KnownJobs;
  /** Kinds of payloads that it has just rejected, as `rejectedKind` writes them: it leaves those to others for now. */
  readonly avoids?: ReadonlySet<string>;
}

/** A kind of rejected payloads of a job name. */
export function rejectedKind(name: string, kind: string | undefined): string {
  return kind === undefined ? name : [name, kind].join(MARK);
}

/** Whether a worker may take jobs of this name that wait aside. */
export function mayRead({ knows, avoids }: Reader, name: string, { version, isRejected, kind }: Aside): boolean {
  const known = knows?.get(name);
  return known !== undefined && known >= version && !(isRejected && avoids?.has(rejectedKind(name, kind)));
}

/** Stands in no name of a job or a queue. */
export const MARK = '\u0001';
const REJECTED = 'rejected';

/**
 * SQLite and PostgreSQL keep the partitions of jobs aside under a queue of their own, which they name like this: so claims of
 * the queue itself do not meet them, those of an older version included.
 */
export function asideQueue(queue: string, name: string, { version, isRejected, kind = '' }: Aside): string {
  return [queue, name, version, isRejected ? `${REJECTED}${kind}` : ''].join(MARK);
}

export interface ParsedQueue {
  readonly queue: string;
  /** Null for an ordinary queue. */
  readonly aside: (Aside & { readonly name: string }) | null;
}

export function parseQueue(text: string): ParsedQueue {
  if (!text.includes(MARK)) return { queue: text, aside: null };
  const [queue, name, version, rejected] = text.split(MARK) as [string, string, string, string];
  const isRejected = rejected.startsWith(REJECTED);
  const kind = rejected.slice(REJECTED.length);
  return { queue, aside: { name, version: Number(version), isRejected, ...(kind !== '' && { kind }) } };
}
