import { asideQueue, MARK, type ParsedQueue, parseQueue } from './aside.ts';

/*
 * SQLite and PostgreSQL keep the partitions of jobs behind limits under a queue of their own, as they do for jobs aside. Its
 * name is made of the queue, of what makes the jobs wait aside, if anything does, and of the names of the limits; the keys
 * are part of the partition. So a claim of the queue never meets these partitions, nor does that of an older version, which
 * takes the name for one of jobs aside that no worker knows; and all partitions of a limit are under a few queues.
 */

/** `queue` is the name of a queue, or what `asideQueue` has made of it. */
export function limitedQueue(queue: string, limits: readonly string[]): string {
  const within = queue.includes(MARK) ? queue : asideQueue(queue, '', noAside);
  return `${within}${MARK}${JSON.stringify(limits)}`;
}

/** Of a queue's name: those that `asideQueue` makes, and the limits. */
const PARTS = 5;
const noAside = { version: 0, isRejected: false };

export interface ParsedLimitedQueue extends ParsedQueue {
  /** Names. */
  readonly limits: readonly string[];
}

/** Takes what `limitedQueue` has made. */
export function parseLimitedQueue(text: string): ParsedLimitedQueue {
  const end = text.lastIndexOf(MARK);
  const { queue, aside } = parseQueue(text.slice(0, end));
  const limits = JSON.parse(text.slice(end + MARK.length)) as string[];
  return { queue, aside: aside?.name === '' ? null : aside, limits };
}

/** Of any queue as it is stored. */
export function limitsOfQueue(text: string): readonly string[] {
  return text.split(MARK).length === PARTS ? parseLimitedQueue(text).limits : [];
}
