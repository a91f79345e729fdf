import type { Call } from './engine.ts';

/*
 * What is sent to the thread, and what is written in one transaction, is bounded in bytes as well as in number: a text
 * of JavaScript cannot grow beyond half a gigabyte, and what is sent is held in memory twice.
 */
export const PART_BYTES: number = 4 * 1_048_576;

/** About how large a call is: the payloads of new jobs, which are most of what is sent. */
export function bytesOfCall({ verb, args }: Call): number {
  return verb === 'enqueue' ? (args[1] as string).length : 0;
}
