import { sha256 } from './bytes.ts';

/**
 * The id of a job that follows from something else: however often it is made, it is the same job. It sorts by that time, as a UUIDv7
 * does, but is a UUID of version 8: anyone can compute it, so the store protocol takes no such id for a job that is enqueued.
 */
export function derivedId(at: number, text: string): string {
  const time = Math.max(0, at).toString(16).padStart(12, '0');
  const digest = sha256(`${at}\n${text}`);
  const variant = ((Number.parseInt(digest.slice(3, 4), 16) & 0x3) | 0x8).toString(16);
  const rest = [`8${digest.slice(0, 3)}`, `${variant}${digest.slice(4, 7)}`, digest.slice(7, 19)];
  return `${time.slice(0, 8)}-${time.slice(8)}-${rest.join('-')}`;
}
